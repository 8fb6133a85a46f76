"""Facts about Slurm on which the controller relies, each on a real one (22.05 was at hand)."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tools.toy_slurm import missing, toy_slurm

GONE = "Unexpected message received for job"  # scontrol's words for no answer


def is_in(toy, state, *jobs):
    """Return a function that says whether all jobs are in a state of Slurm."""
    return lambda: all(toy.job(job)["job_state"] == state for job in jobs)


def running(toy, *options, **given):
    """Submit a job and return its id once it runs."""
    job = toy.submit(*options, **given)
    toy.wait(is_in(toy, "RUNNING", job))
    return job


def waiting(toy, *options):
    """Submit a job that Slurm would start at once, and return its id; it waits by its begin."""
    return toy.submit("--begin=now+3600", *options)


def given(toy, *words):
    """Give a command of scontrol that is obeyed without a word."""
    assert toy.run("scontrol", *map(str, words)).stderr == ""


def refused(toy, *words):
    """Give a command of scontrol that is refused with status 1; return what it says."""
    done = toy.run("scontrol", *map(str, words), check=False)
    assert done.returncode == 1
    return (done.stdout + done.stderr).strip()


def reason(toy, job):
    """Return why a job waits."""
    return toy.job(job)["state_reason"]


def test_a_document_names_its_version_and_all_jobs(toy):
    """``squeue --json`` says its plugin, and takes no notice of filters of jobs or states."""
    job = waiting(toy, "--comment=ronda:gpus=1:1/2:1.9")
    said = json.loads(toy.run("squeue", "--json", "--jobs=99999", "--states=RUNNING").stdout)
    assert said["errors"] == []
    assert said["meta"]["plugin"]["type"].startswith("openapi/v0.0.")
    assert said["meta"]["Slurm"]["version"]["major"] >= 22
    assert [j["comment"] for j in said["jobs"] if j["job_id"] == job] == ["ronda:gpus=1:1/2:1.9"]


def test_an_unknown_job_or_node_is_refused_in_one_line(toy):
    """The status is 1, and the text names the job, not the node."""
    unknown = "Invalid job id specified for job 99999"
    assert refused(toy, "update", "JobId=99999", "Priority=5") == unknown
    assert refused(toy, "requeue", "incomplete", 99999) == unknown
    assert "Invalid job id specified" in refused(toy, "show", "job", 99999)
    asleep = refused(toy, "update", "NodeName=nope", "State=POWER_DOWN")
    assert asleep == "slurm_update error: Invalid node name specified"


def test_the_start_of_a_waiting_job_may_be_a_forecast(toy):
    """Backfill writes into ``start_time`` when it believes that a job will start."""
    running(toy, "--nodelist=n1", "--gres=gpu:a100:8", "--time=30")
    job = toy.submit("--nodelist=n1", "--gres=gpu:a100:8", "--time=30")
    toy.wait(lambda: toy.job(job)["start_time"] > time.time() + 60)
    assert toy.job(job)["job_state"] == "PENDING"
    assert toy.job(job)["eligible_time"] < time.time()


def test_a_held_job_has_no_priority(toy):
    """A priority for a held job is refused, after its release taken; one of 0 is a hold."""
    job = toy.submit("--hold")
    assert reason(toy, job) == "JobHeldUser"
    held = f"Job is in held state, pending scheduler release for job {job}"
    assert refused(toy, "update", f"JobId={job}", "Priority=777") == held
    assert toy.job(job)["priority"] == 0
    given(toy, "update", f"JobId={job}", "StartTime=now+600")
    given(toy, "release", job)
    given(toy, "update", f"JobId={job}", "Priority=777")
    assert toy.job(job)["priority"] == 777
    given(toy, "update", f"JobId={job}", "Priority=0")
    assert reason(toy, job) == "JobHeldAdmin"


@pytest.mark.parametrize("kind", ["basic", "multifactor"])
def test_a_priority_decides_who_starts_next_and_stays(fresh_toy, kind):
    """The later job overtakes by its number, which a requeue does not take from it."""
    toy = fresh_toy(nodes=1, PriorityType=f"priority/{kind}", PriorityWeightAge=1000)
    first = running(toy, "--exclusive")
    second, third = toy.submit("--exclusive"), toy.submit("--exclusive")
    given(toy, "update", f"JobId={second}", "Priority=50")
    given(toy, "update", f"JobId={first},{third}", "Priority=900")
    toy.run("scancel", str(first))
    toy.wait(is_in(toy, "RUNNING", third))
    given(toy, "requeue", "incomplete", third)
    toy.wait(is_in(toy, "PENDING", third))
    assert (toy.job(second)["priority"], toy.job(third)["priority"]) == (50, 900)


def test_a_list_changes_all_jobs_that_can_be_changed(toy):
    """One line of a held, an ended and an unknown job each; a running one is changed, too."""
    ended = toy.submit("--time=1", command="true")
    runs, held = running(toy), toy.submit("--hold")
    one, two = waiting(toy), waiting(toy)
    toy.wait(is_in(toy, "COMPLETED", ended))
    listed = f"JobId={one},99999,{held},{ended},{runs},{two}"
    said = refused(toy, "update", listed, "Priority=600")
    assert said.splitlines() == [
        "Invalid job id specified for job 99999",
        f"Job is in held state, pending scheduler release for job {held}",
        f"Job has already finished for job {ended}",
    ]
    assert [toy.job(job)["priority"] for job in (one, two, runs, held)] == [600, 600, 600, 0]


def test_a_lease_ends_by_itself_and_changes_nothing_else(toy):
    """The job waits for its begin, then starts, with its submit time and priority."""
    job = toy.submit("--gres=gpu:a100:8")
    before = toy.job(job)
    earliest = int(time.time()) + 6
    given(toy, "update", f"JobId={job}", "StartTime=now+6")
    latest = time.time() + 7
    toy.wait(lambda: reason(toy, job) == "BeginTime", 6)
    leased = toy.job(job)
    assert leased["job_state"] == "PENDING"
    assert earliest <= leased["start_time"] == leased["eligible_time"] <= latest
    toy.wait(is_in(toy, "RUNNING", job))
    after = toy.job(job)
    assert after["start_time"] >= leased["start_time"]
    assert after["eligible_time"] == leased["eligible_time"]
    for field in ("submit_time", "priority", "required_nodes", "comment", "restart_cnt"):
        assert after[field] == before[field]


def test_a_lease_is_taken_back(toy):
    """``StartTime=now`` lets the job go; on a running job a lease is refused."""
    job = waiting(toy)
    given(toy, "update", f"JobId={job}", "StartTime=now")
    toy.wait(is_in(toy, "RUNNING", job))
    late = f"Job is no longer pending execution for job {job}"
    assert refused(toy, "update", f"JobId={job}", "StartTime=now+60") == late


def test_a_job_starts_on_the_node_that_it_is_told(toy):
    """Nodes, size, time and start are changed at once, while the job waits."""
    job = waiting(toy, "--gres=gpu:a100:2", "--time=30")
    size = ("TresPerNode=gres:gpu:a100:4", "TimeLimit=10")
    given(toy, "update", f"JobId={job}", "ReqNodeList=n3", *size, "StartTime=now")
    assert toy.job(job)["required_nodes"] == "n3"
    toy.wait(is_in(toy, "RUNNING", job))
    seen = toy.job(job)
    assert (seen["nodes"], seen["time_limit"]) == ("n3", 10)
    assert seen["tres_per_node"] == "gres:gpu:a100:4"
    assert seen["gres_detail"] == ["gpu:a100:4(IDX:0-3)"]
    nodes = refused(toy, "update", f"JobId={job}", "ReqNodeList=n4")
    assert nodes == f"Invalid node name specified for job {job}"
    sizes = refused(toy, "update", f"JobId={job}", "TresPerNode=gres:gpu:a100:1")
    assert sizes == f"Job is no longer pending execution for job {job}"


def test_a_list_of_nodes_means_all_of_them(toy):
    """A job of one node that is told two runs on both."""
    job = waiting(toy)
    given(toy, "update", f"JobId={job}", "ReqNodeList=n2,n3", "StartTime=now")
    toy.wait(is_in(toy, "RUNNING", job))
    assert (toy.job(job)["nodes"], toy.job(job)["node_count"]) == ("n[2-3]", 2)


def test_nodes_are_cleared_and_an_unknown_one_is_refused(toy):
    """An empty list frees the job; a refused one, or one for two jobs, changes nothing."""
    job = waiting(toy, "--nodelist=n1")
    unknown = refused(toy, "update", f"JobId={job}", "ReqNodeList=nope")
    assert unknown == f"Invalid node name specified for job {job}"
    two = refused(toy, "update", f"JobId={job},{waiting(toy)}", "ReqNodeList=n2")
    assert two.startswith("scontrol: error: Invalid job ID")
    assert toy.job(job)["required_nodes"] == "n1"
    given(toy, "update", f"JobId={job}", "ReqNodeList=")
    assert toy.job(job)["required_nodes"] == ""


def test_a_size_keeps_the_type_of_the_request(toy):
    """``Gres=`` is another word for it; another type is refused, but not what no node has."""
    typed, plain = waiting(toy, "--gres=gpu:a100:2"), waiting(toy, "--gres=gpu:2")
    given(toy, "update", f"JobId={typed}", "Gres=gpu:a100:3")
    given(toy, "update", f"JobId={plain}", "TresPerNode=gres:gpu:3")
    mixed = "Invalid GRES specification (with and without type identification) for job"
    for job, size in ((typed, "gres:gpu:1"), (plain, "gres:gpu:a100:1")):
        said = refused(toy, "update", f"JobId={job}", f"TresPerNode={size}")
        assert said == f"{mixed} {job}"
    assert toy.job(typed)["tres_per_node"] == "gres:gpu:a100:3"
    given(toy, "update", f"JobId={plain}", "TresPerNode=gres:gpu:99")
    assert toy.job(plain)["tres_per_node"] == "gres:gpu:99"


def test_the_id_of_an_array_means_all_its_tasks(toy):
    """One task is named by array and index."""
    array = toy.submit("--array=0-2", "--gres=gpu:a100:4")
    toy.wait(lambda: [j["job_state"] for j in toy.jobs().values()].count("RUNNING") == 3)
    assert toy.job(array)["array_task_id"] == 2  # the last task keeps the array's id
    given(toy, "requeue", "incomplete", f"{array}_2")
    toy.wait(lambda: toy.job(array)["job_state"] == "PENDING")
    tasks = [j for j in toy.jobs().values() if j["array_job_id"] == array]
    assert sorted(j["restart_cnt"] for j in tasks) == [0, 0, 1]
    given(toy, "update", f"JobId={array}", "Priority=70")
    tasks = [j for j in toy.jobs().values() if j["array_job_id"] == array]
    assert [j["priority"] for j in tasks] == [70, 70, 70]


def test_a_resize_by_requeue(fresh_toy):
    """PENDING seen and two seconds passed, the new size starts at once on the new node."""
    toy = fresh_toy(nodes=2, cred_expire=120)
    say = "echo run ${SLURM_RESTART_COUNT:-0}; sleep 600"
    options = ("--gres=gpu:a100:2", "--nodelist=n1", "--job-name=two words")
    job = running(toy, *options, command=say)
    kept = running(toy, *options, "--open-mode=append", command=say)
    written = ("cat", f"out-{job}", f"out-{kept}")
    toy.wait(lambda: toy.run(*written, check=False).stdout.count("run") == 2)
    before = toy.job(job)
    toy.wait(lambda: time.time() > before["submit_time"] + 1)
    asked = time.time()
    given(toy, "requeue", "incomplete", f"{job},{kept}")
    assert toy.job(job)["job_state"] in ("COMPLETING", "PENDING")
    toy.wait(is_in(toy, "PENDING", job, kept))
    seen = toy.job(job)
    assert seen["submit_time"] > before["submit_time"]
    assert seen["submit_time"] + 121 == seen["start_time"]  # cred_expire + 1
    assert (seen["restart_cnt"], seen["required_nodes"]) == (1, "n1")
    toy.wait(lambda: time.time() > asked + 2)
    change = ("TresPerNode=gres:gpu:a100:4", "ReqNodeList=n2", "StartTime=now")
    given(toy, "update", f"JobId={job}", *change)
    given(toy, "update", f"JobId={kept}", *change)
    toy.wait(is_in(toy, "RUNNING", job, kept))
    seen = toy.job(job)
    assert seen["nodes"] == "n2"
    assert seen["gres_detail"][0].startswith("gpu:a100:4")
    toy.wait(lambda: toy.run(*written).stdout.count("run 1") == 2)
    lines = toy.run(*written).stdout.splitlines()
    kept_lines = [line for line in lines if line.startswith("run")]
    assert kept_lines == ["run 1", "run 0", "run 1"]  # the first output was truncated
    ended = [c for c in toy.completions() if c["JobId"] == str(job)]
    assert [(c["Name"], c["JobState"]) for c in ended] == [("two words", "PENDING")]


def test_a_job_that_has_ended_is_not_started_again_by_requeue_incomplete(toy):
    """Without the word it is: between reading and acting a job may end."""
    job = toy.submit(command="true")
    toy.wait(is_in(toy, "COMPLETED", job))
    given(toy, "requeue", "incomplete", job)
    assert toy.job(job)["job_state"] == "COMPLETED"
    given(toy, "requeue", job)
    assert toy.job(job)["job_state"] == "PENDING"


def test_a_requeue_of_another_kind_of_job_changes_nothing(toy):
    """A waiting job is neither held nor moved by it; one that forbids requeues runs on."""
    waits, forbids = waiting(toy), running(toy, "--no-requeue")
    before = toy.job(waits)
    given(toy, "requeue", "incomplete", waits)
    pending = f"Job is pending execution for job {waits}"
    assert refused(toy, "requeue", waits) == pending
    assert toy.job(waits) == before
    said = refused(toy, "requeue", "incomplete", forbids)
    assert said == f"Requested operation is presently disabled for job {forbids}"
    assert toy.job(forbids)["job_state"] == "RUNNING"


def test_an_absent_controller_is_told_from_an_empty_cluster_by_errors_alone(fresh_toy):
    """JSON comes with status 0 and no job; commands fail once MessageTimeout has passed."""
    toy = fresh_toy(nodes=1, MessageTimeout=2)
    job = running(toy)
    toy.stop_controller()
    begin = time.monotonic()
    assert "is DOWN" in refused(toy, "ping")
    assert time.monotonic() - begin < 1.5
    asked = [("squeue", "--json"), ("sinfo", "--json"), ("squeue",)]
    asked += [("scontrol", "update", f"JobId={job}", "Priority=5")]
    with ThreadPoolExecutor(len(asked)) as pool:
        jobs, nodes, table, update = pool.map(lambda w: toy.run(*w, check=False), asked)
    assert 1 < time.monotonic() - begin < 20
    for done, key in ((jobs, "jobs"), (nodes, "nodes")):
        assert (done.returncode, done.stderr) == (0, "")
        said = json.loads(done.stdout)
        assert said[key] == []
        assert said["errors"] != []
    assert table.returncode == 1
    assert "Unable to contact slurm controller" in table.stderr
    assert (update.returncode, update.stderr) == (1, f"{GONE} {job}\n")
    toy.start_controller()
    assert toy.job(job)["job_state"] == "RUNNING"


def test_a_command_that_got_no_answer_may_still_be_obeyed(fresh_toy):
    """A controller that hangs reads it when it goes on."""
    toy = fresh_toy(nodes=1, MessageTimeout=2)
    job = waiting(toy)
    with toy.paused_controller():
        assert refused(toy, "update", f"JobId={job}", "Priority=77") == f"{GONE} {job}"
    toy.wait(lambda: toy.job(job)["priority"] == 77)


def test_a_restarted_controller_goes_on(fresh_toy):
    """Jobs run on; stopped in peace it keeps leases and priorities, killed it may lose them."""
    toy = fresh_toy(nodes=1)
    runs, waits = running(toy), waiting(toy)
    started = toy.job(runs)["start_time"]
    given(toy, "update", f"JobId={waits}", "Priority=77", "StartTime=now+500")
    begin = toy.job(waits)["start_time"]
    toy.restart_controller()
    assert (toy.job(waits)["priority"], toy.job(waits)["start_time"]) == (77, begin)
    toy.restart_controller(kill=True)
    seen = toy.job(runs)
    assert (seen["job_state"], seen["start_time"]) == ("RUNNING", started)
    assert (seen["restart_cnt"], toy.job(waits)["job_state"]) == (0, "PENDING")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A cluster on which all that takes ten seconds was begun at once; the jobs by name.

    n1 lost its slurmd for a moment, n2 for good, n3 died; n4 falls asleep, n5 would, were it idle.
    """
    if (absent := missing()) is not None:
        pytest.skip(absent)
    quick = {"MessageTimeout": 2, "SlurmdTimeout": 3, "SuspendTimeout": 2}
    with toy_slurm(tmp_path_factory.mktemp("slurm"), nodes=5, **quick) as toy:
        where = {"blinks": 1, "again": 1, "orphan": 2, "dies": 3, "fails": 3, "busy": 5}
        jobs = {
            name: toy.submit(f"--nodelist=n{n}", *["--no-requeue"] * (name == "fails"))
            for name, n in where.items()
        }
        toy.wait(is_in(toy, "RUNNING", *jobs.values()))
        toy.kill_slurmd("n1")
        toy.node_start("n1")
        given(toy, "requeue", "incomplete", jobs["again"])
        toy.kill_slurmd("n2")
        toy.node_stop("n3")
        given(toy, "update", "NodeName=n[4-5]", "State=POWER_DOWN")
        yield SimpleNamespace(toy=toy, **jobs)


def node(toy, name):
    """Return the state of a node with its flags."""
    seen = toy.nodes()[name]
    return {seen["state"], *seen["state_flags"]}


def test_a_busy_node_does_not_fall_asleep_and_takes_new_jobs(begun):
    """POWER_DOWN waits for the last job, and does not keep others away."""
    assert node(begun.toy, "n5") == {"mixed", "POWER_DOWN"}
    job = running(begun.toy, "--nodelist=n5")
    assert begun.toy.job(job)["nodes"] == "n5"
    begun.toy.run("scancel", str(job))
    assert begun.toy.job(begun.busy)["job_state"] == "RUNNING"


def test_a_sleeping_node_is_woken_by_a_request_or_a_job(begun):
    """A request while it falls asleep is lost; a job that needs it wakes it."""
    toy = begun.toy
    toy.wait(lambda: "POWER_DOWN" not in node(toy, "n4"))
    if "POWERING_DOWN" in node(toy, "n4"):  # alone, or the first of these tests
        given(toy, "update", "NodeName=n4", "State=POWER_UP")
    toy.wait(lambda: node(toy, "n4") == {"idle", "POWERED_DOWN"})
    assert [call[1:] for call in toy.power_log()] == [("down", "n4")]
    given(toy, "update", "NodeName=n4", "State=POWER_UP")
    toy.wait(lambda: node(toy, "n4") == {"idle"})
    assert [call[1:] for call in toy.power_log()] == [("down", "n4"), ("up", "n4")]
    given(toy, "update", "NodeName=n4", "State=POWER_DOWN")
    toy.wait(lambda: node(toy, "n4") == {"idle", "POWERED_DOWN"})
    job = toy.submit("--nodelist=n4")
    toy.wait(is_in(toy, "CONFIGURING", job))
    toy.wait(lambda: node(toy, "n4") == {"mixed"})
    assert [verb for _, verb, _ in toy.power_log()] == ["down", "up"] * 2


def test_jobs_of_a_node_that_does_not_answer_are_requeued_or_fail(begun):
    """A slurmd that is away costs its jobs as much as a dead node; one that returns, none."""
    toy = begun.toy
    toy.wait(lambda: "NOT_RESPONDING" in node(toy, "n3"))
    toy.wait(lambda: {"down", "NOT_RESPONDING"} == node(toy, "n2") == node(toy, "n3"))
    toy.wait(is_in(toy, "PENDING", begun.orphan, begun.dies))
    assert [toy.job(job)["restart_cnt"] for job in (begun.orphan, begun.dies)] == [1, 1]
    assert toy.job(begun.fails)["job_state"] == "NODE_FAIL"
    ends = {int(c["JobId"]): c["JobState"] for c in toy.completions()}
    assert ends[begun.orphan] == ends[begun.dies] == ends[begun.fails] == "NODE_FAIL"
    seen = toy.job(begun.blinks)
    assert (seen["job_state"], seen["restart_cnt"]) == ("RUNNING", 0)
    toy.node_start("n3")
    toy.wait(is_in(toy, "RUNNING", begun.dies))


def test_a_requeued_job_goes_on_by_itself(begun):
    """Where nobody changes its begin, it waits for the end of its credential."""
    begun.toy.wait(is_in(begun.toy, "RUNNING", begun.again))
    seen = begun.toy.job(begun.again)
    assert seen["restart_cnt"] == 1
    assert seen["start_time"] >= seen["eligible_time"] == seen["submit_time"] + 6
