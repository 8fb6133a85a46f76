# A job that works: job.sh FILE WORK SPEEDS
#
# It appends a line to FILE when a run starts, each second, and when the run is stopped or ends:
# word, time, run, GPUs, nodes, and the work done so far, all times in microseconds. A later run goes
# on from the last line. WORK is in microseconds on the GPUs that were asked for; SPEEDS says, as
# "1:286 2:543 4:1000", how fast it goes on other numbers of GPUs, in thousandths of that.
file=$1 work=$2 speeds=" $3 "
own=(${CUDA_VISIBLE_DEVICES//,/ })
gpus=$((${#own[@]} * SLURM_JOB_NUM_NODES))
run=${SLURM_RESTART_COUNT:-0}-$$
speed=0 before=0 got=0
case $speeds in *" $gpus:"*) speed=${speeds#* "$gpus":} speed=${speed%% *} ;; esac
[ ! -s "$file" ] || before=$(tail -n 1 "$file" | cut -d ' ' -f 6)
begin=${EPOCHREALTIME/./} now=${EPOCHREALTIME/./}
tick() { now=${EPOCHREALTIME/./} got=$((before + (now - begin) * speed / 1000)); }
say() { echo "$1 $now $run $gpus $SLURM_JOB_NODELIST $got" >>"$file"; }
trap 'tick; say stop; exit 143' TERM
tick
[ "$speed" -gt 0 ] || { say bare && exit 99; } # on none of its GPUs: Slurm is to requeue it
say start
while tick && [ "$got" -lt "$work" ]; do
  say work
  rest=$(((work - got) * 1000 / speed + 1))
  [ "$rest" -lt 1000000 ] || rest=1000000
  sleep "$((rest / 1000000)).$(printf %06d $((rest % 1000000)))"
done
got=$work
say end
