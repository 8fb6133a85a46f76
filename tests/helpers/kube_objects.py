"""Objects of Kubernetes as `kubectl get -o json` gives them, cut down to what is read."""

START = "2026-01-31T12:00:00Z"


def node(name, labels=None, taints=(), **allocatable):
    """Return a node; ``gpus`` is short for nvidia.com/gpu."""
    offers = {"cpu": "64", "memory": "512Gi", "pods": "110", **allocatable}
    if "gpus" in offers:
        offers["nvidia.com/gpu"] = offers.pop("gpus")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": offers},
    }


def spec(gpus=0, cpu="1", **more):
    """Return the spec of a pod with one container."""
    asks = {"cpu": cpu} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {"containers": [{"name": "main", "resources": {"requests": asks}}], **more}


def pod(name, on=None, phase=None, labels=None, annotations=None, owner=None, **asked):
    """Return a pod, which waits unless it is on a node."""
    body = spec(**asked) | ({"nodeName": on} if on else {})
    metadata = {"name": name, "namespace": "a", "creationTimestamp": START}
    metadata |= {"labels": labels or {}, "annotations": annotations or {}}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "x", "uid": f"uid-{owner}"}]
    status = {"phase": phase or ("Running" if on else "Pending")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body, "status": status}


def kueue(kind, name, body, namespace=None, version="v1beta2", **more):
    """Return an object of Kueue."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= {"creationTimestamp": START} if kind == "Workload" else {}
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": body,
        **more,
    }


def queue(name, gpus="8", cohort=None, flavor="default", resource="nvidia.com/gpu", **more):
    """Return a ClusterQueue with quota of one resource, and a LocalQueue `name` for it."""
    quota = {"name": resource, "nominalQuota": gpus}
    group = {
        "coveredResources": [resource],
        "flavors": [{"name": flavor, "resources": [quota]}],
    }
    body = {"resourceGroups": [group], **({"cohortName": cohort} if cohort else {}), **more}
    return [
        kueue("ClusterQueue", name, body),
        kueue("LocalQueue", name, {"clusterQueue": name}, namespace="a"),
    ]


def workload(name, count=1, gpus=1, queue="q", pod_set=None, status=None, **more):
    """Return a Workload with one pod set."""
    sets = [{"name": "main", "count": count, "template": {"spec": spec(gpus)}, **(pod_set or {})}]
    body = {"queueName": queue, "podSets": sets, **more}
    return kueue("Workload", name, body, namespace="a", status=status or {})


def admitted(flavor="default", queue="q", **assignment):
    """Return the status of a workload that is admitted."""
    given = {"name": "main", "flavors": {"nvidia.com/gpu": flavor}, **assignment}
    told = [
        {"type": kind, "status": "True", "lastTransitionTime": START, "reason": kind}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return {
        "admission": {"clusterQueue": queue, "podSetAssignments": [given]},
        "conditions": told,
    }


def listed(*objects):
    """Return a List of objects and lists of objects."""
    flat = [o for each in objects for o in (each if isinstance(each, list) else [each])]
    return {"apiVersion": "v1", "kind": "List", "items": flat}
