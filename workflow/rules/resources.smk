# Memory (MB), time (minutes), threads and devices of the jobs, by the table in rnnsmt.plan.resources: rules ask a cluster for
# them; on one machine nobody looks at the time, and the jobs share the memory (profiles/default).
from rnnsmt.monitoring.estimate import lines as estimate
from rnnsmt.plan.resources import Machine
from rnnsmt.search.memory import MOST_NEURAL_MEGABYTES

if workflow.is_main_process:
    for line in estimate(config):
        logger.info(line)


def cores():
    """The cores of this machine; 1 on a cluster, where the profile says how many threads a job gets."""
    try:
        return 1 if CLUSTER else workflow.cores
    except WorkflowError:  # nobody said how many, as when nothing is to be executed
        return 1


machine = Machine(
    config,
    cores=cores(),
    memory_mb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6,
    has_gpu=shutil.which("nvidia-smi") is not None,
    neural_mb=MOST_NEURAL_MEGABYTES,
)
GPU, DEVICE, LONG = machine.gpu, machine.device, machine.long


def memory(rule):
    """mem_mb of a rule."""
    return lambda wildcards, input, attempt: machine.memory(rule, input, attempt)


def search_memory(rule):
    """mem_mb of a rule that searches, which needs more where the search asks networks."""
    return lambda wildcards, input, attempt: machine.search_memory(rule, input, attempt)


def minutes(rule, parts=lambda wildcards: 1):
    """runtime of a rule. parts: how many jobs share the work."""
    return lambda wildcards, input, attempt: machine.minutes(rule, input, attempt, parts(wildcards))


def parts_of(wildcards):
    """How many jobs share the work of this one."""
    return int(wildcards.scatteritem.split("-of-")[1])


def part_threads(wildcards):
    """A share of the cores for each part."""
    return machine.share(parts_of(wildcards))


def search_env(wildcards):
    """The environment of the decoder: with PyTorch where it asks a network."""
    return TORCH_ENV if systems.networks_in_search(wildcards.system) else BASE_ENV


def search_gpu(wildcards):
    """Whether the decoder takes a GPU for itself: on a cluster, which gives GPUs as a whole."""
    return GPU if CLUSTER and systems.networks_in_search(wildcards.system) else 0


def search_gpu_share(wildcards):
    """Whether the decoder works on a GPU beside other jobs of this machine: it leaves it idle for most of the time."""
    return GPU if not CLUSTER and systems.networks_in_search(wildcards.system) else 0
