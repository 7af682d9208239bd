# Memory (MB), time (minutes), threads and devices of the jobs, by the table in src/rnnsmt/plan/resources.py. A cluster
# enforces memory and time; on one machine the jobs share the memory (profiles/default), and the time is not limited.
from rnnsmt.monitoring.estimate import lines as estimate
from rnnsmt.monitoring.estimate import first_layers_mb
from rnnsmt.plan.resources import MEMORY_SHARE, Machine, available_memory_mb
from rnnsmt.search.options import MOST_NEURAL_MEGABYTES

if workflow.is_main_process:
    for line in estimate(config):
        logger.info(line)


def cores():
    """Return the cores of this machine; 1 on a cluster, where the profile sets the threads of a job."""
    try:
        return 1 if CLUSTER else workflow.cores
    except WorkflowError:  # --cores is not given, e.g. if nothing is executed
        return 1


def memory_of_jobs():
    """Return the memory of all jobs of this machine in MB: --resources mem_mb, or the value of profiles/default."""
    given = workflow.global_resources.get("mem_mb").value
    return MEMORY_SHARE * available_memory_mb() if given is None else given


machine = Machine(
    config,
    cores=cores(),
    memory_mb=memory_of_jobs(),
    has_gpu=shutil.which("nvidia-smi") is not None,
    neural_mb=MOST_NEURAL_MEGABYTES,
    layer_mb=first_layers_mb(config),
)
GPU, DEVICE, LONG = machine.gpu, machine.device, machine.long


def memory(rule):
    """Return mem_mb of a rule."""
    return lambda wildcards, input, attempt: machine.memory(rule, input, attempt)


def search_memory(rule):
    """Return mem_mb of a rule that decodes; decoding with networks needs more memory."""
    return lambda wildcards, input, attempt: machine.search_memory(rule, input, attempt)


def search_threads(rule):
    """Return the threads of a rule that decodes, more if fewer jobs than systems fit into the memory."""

    def threads(wildcards, input):
        models = systems.of_every_training("results/{name}/network{n}/model.pt")
        training = not all(map(os.path.exists, models))
        try:
            return machine.threads_of_search(rule, input, training)
        except WorkflowError:  # the files do not exist yet; Snakemake calls this function again before the job
            return machine.search_threads

    return threads


def minutes(rule, parts=lambda wildcards: 1):
    """Return runtime of a rule. parts: number of jobs that share the work."""
    return lambda wildcards, input, attempt: machine.minutes(rule, input, attempt, parts(wildcards))


def parts_of(wildcards):
    """Return the number of jobs that share the work of this one."""
    return int(wildcards.scatteritem.split("-of-")[1])


def part_threads(wildcards):
    """Return the share of the cores of one of several jobs."""
    return machine.share(parts_of(wildcards))


def search_env(wildcards):
    """Return the conda environment of the decoder, with PyTorch if it queries a network."""
    return TORCH_ENV if systems.networks_in_search(wildcards.system) else BASE_ENV


def search_gpu(wildcards):
    """Return whether the decoder needs a GPU of its own: on a cluster. On one machine, jobs share the GPU."""
    return GPU if CLUSTER and systems.networks_in_search(wildcards.system) else 0
