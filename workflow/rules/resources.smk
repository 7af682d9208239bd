# Memory (MB), time (minutes), threads and devices of the jobs. A cluster enforces memory and time. On one machine, the
# jobs share the memory, and the time is not limited.
#
# The requests stand beside the commands. They are linear functions of the size of the input files in MB (compressed, if
# they are), set on Multi30k, mini-wmt and ten million words of laws, and compared with the peaks on 0.4 to 15 million
# tokens (research/scale.md); every further attempt requests more. Memory that grows with the vocabulary grows more slowly
# than the text, so the requests for large corpora are higher than necessary; --set-resources and profiles override them.
import psutil

from rnnsmt.nnjm.settings import JointSettings
from rnnsmt.search.options import MOST_NEURAL_MEGABYTES

# Memory of Snakemake itself in a job on a cluster.
SNAKEMAKE_MB = 300

# Maximum runtime of all jobs, in minutes: ten years on one machine.
MOST_MINUTES = 60 * settings.job_hours if CLUSTER else 10 * 365 * 1440

# Resources that the jobs of one machine share, unless --resources is given: one training or scoring at a time uses the
# GPU, beside the searches with a network, which leave it idle most of the time; all jobs together get 85 % of the memory.
# On a cluster, --resources of the profile limits the number of GPUs.
if not CLUSTER:
    for name, amount in {"gpu": 1, "mem_mb": int(0.85 * psutil.virtual_memory().total / 1e6)}.items():
        workflow.global_resources.setdefault(name, amount)

# Device of the networks. A machine that submits jobs cannot detect the GPUs of the cluster, so they must be requested by
# rnn: {device: cuda}.
DEVICE = settings.rnn.device
if DEVICE == "auto":
    DEVICE = "cuda" if not CLUSTER and shutil.which("nvidia-smi") else "cpu"

# One GPU, as executors ask for it: gpu (Slurm, and commands of cluster-generic), with gpu_manufacturer and scale=0, for a
# limit besides the request (Kubernetes), nvidia_gpu (Google Batch), _gpus (AWS Batch). Jobs without a GPU have none of
# these: for Kubernetes, 0 is a request, too.
ONE_GPU = {"gpu": 1}
if CLUSTER:
    ONE_GPU |= {"gpu_manufacturer": "nvidia", "scale": 0, "nvidia_gpu": 1, "_gpus": 1}

# Resources of the job of a network: its device, and a GPU.
ON_DEVICE = {"device": DEVICE, **(ONE_GPU if DEVICE == "cuda" else {})}

# Main memory of CUDA in the job of a network; 0.9 to 1.0 GB on an H200.
CUDA_MB = 1000 if DEVICE == "cuda" else 0

# Threads. On a cluster: for nodes of 16 cores (--max-threads and --set-threads change them). On one machine, the jobs
# share the cores.
CORES = workflow.resource_settings.cores or 1
HALF = max(1, CORES // 2)

# Of a word alignment, and of Moses' training: half of the cores, beside other jobs.
LONG_THREADS = 16 if CLUSTER else 1 if is_demo_corpus(settings) else HALF

# Of a network's training, so that the other half of the cores remains for the tuning of other systems.
TRAINING_THREADS = 4 if CLUSTER else min(HALF, 16)

# Of the stages from text to tables, which read two sides or use two processes: at most half of the cores, since they
# would otherwise wait for the end of a training. On the demo corpus, two stages of one thread each are faster.
STAGE_THREADS = 8 if CLUSTER else 1 if is_demo_corpus(settings) else min(HALF, 2)

# Of tuning and decoding: the share of every system, so that all systems are tuned at the same time. On a cluster, tuning runs
# take longest.
SHARE = max(1, CORES // len(settings.compare))
SEARCH_THREADS = 8 if CLUSTER else SHARE
TUNING_THREADS = 16 if CLUSTER else SHARE


def request(needed, attempt):
    """Return the mem_mb of an attempt; Slurm kills a job that uses more."""
    return int(needed * attempt) + (SNAKEMAKE_MB if CLUSTER else 0)


def megabytes(base, slope=0, most=None):
    """Return mem_mb: base + slope × MB of input, at most ``most`` for a stage that writes to disk beyond it."""

    def memory(wildcards, input, attempt):
        needed = base + (slope * input.size_mb if slope else 0)
        return request(min(needed, most or needed), attempt)

    return memory


def per_process(base, each):
    """Return mem_mb of a stage whose threads are processes: base + each × threads."""
    return lambda wildcards, threads, attempt: request(base + each * threads, attempt)


# Main memory (MB) of jobs of a network with the presets demo, small and paper; it does not depend on the size of the text.
# Processors differ: training the RNN of the demo corpus takes up to 1.1 GB on an AMD EPYC with avx512_bf16.
NETWORK_MB = {
    "training": {
        "rnn": (1200, 3000, 8500),
        "cslm": (600, 2800, 8000),
        "nnjm": (900, 1700, 8000),
        "seq2seq": (700, 3200, 12000),
    },
    "columns": {"rnn": (600, 1300, 4000)},
    "lists": {"cslm": (600, 1600, 4000), "seq2seq": (600, 1600, 6000)},
}

# The same for networks of other packages.
OTHER_NETWORK_MB = (2000, 4000, 12000)


def network_megabytes(task, name_of=lambda wildcards: wildcards.name):
    """Return mem_mb of a job of a network.

    task: key of NETWORK_MB.
    name_of: function of the wildcards that returns the name of the network.
    """

    def memory(wildcards, attempt):
        name = name_of(wildcards)
        of_presets = NETWORK_MB[task].get(systems.kind_of(name), OTHER_NETWORK_MB)
        known = dict(zip(("demo", "small", "paper"), of_presets))
        return request(known.get(systems.preset(name), max(of_presets)) + CUDA_MB, attempt)

    return memory


def search_megabytes(base, slope, neural):
    """Return mem_mb of a search: base + slope × MB of input, the language model, and more for every network that it queries.

    The language model (input.lm) is mapped: a job has its pages in memory, and no more. For 10 million words of training text,
    decoding 2,000 sentences took 1,509 MB, with a language model of 593 MB and a table of 214 MB.

    neural: base and slope of the n-grams of a network by MB of source text, for up to 100 cells per stack; the number of
    n-grams grows with search.cslm_cells, up to the limit of the search. A job has the networks of all trainings
    (input.network), and a tuning run queries one of them. The first layer of the joint model is computed for every word of
    both vocabularies; that of the CSLM is part of ``neural``.
    """
    base_of_ngrams, slope_of_ngrams = neural
    slope_of_ngrams *= max(settings.search.cslm_cells / 100, 1)

    def memory(wildcards, input, attempt):
        sources = {input.source} if isinstance(input.source, str) else set(input.source)
        sizes = dict(zip(input, input.size_files_mb))
        text = sum(sizes[path] for path in sources)
        needed = base + 1.1 * sizes[input.lm] + slope * (input.size_mb - sizes[input.lm])
        for name in {Path(model).parent.parent.name for model in input.network}:
            needed += min(base_of_ngrams + slope_of_ngrams * text, MOST_NEURAL_MEGABYTES) + CUDA_MB
            if name == "nnjm":
                network = JointSettings.preset(settings.nnjm.preset, **settings.nnjm.settings)
                words = settings.rnn.vocab_size + 1  # and </s>
                needed += network.sizes(words, words).first_layer_bytes / 1e6
        return request(needed, attempt)

    return memory


# Of the jobs that decode all texts of a system.
DECODING_MB = search_megabytes(480, 6, neural=(200, 18500))


def minutes(base, slope=0, parts=lambda wildcards: 1):
    """Return runtime: base + slope × MB of input; parts: number of jobs that share the work."""

    def runtime(wildcards, input, attempt):
        return int(
            min(longest(wildcards), attempt * (base + (slope * input.size_mb / parts(wildcards) if slope else 0)))
        )

    return runtime


def longest(wildcards):
    """Return the runtime of a job that saves a checkpoint before its time limit and is resumed by the next attempt."""
    if workflow.non_local_exec and not CLUSTER:
        raise WorkflowError(
            "the executor submits jobs to other machines, but the setting cluster is false, so that they would request ten "
            "years and the devices of this machine: add cluster=true to --config, which replaces that of the profile"
        )
    return MOST_MINUTES


def parts_of(wildcards):
    """Return the number of jobs that share the work of this one."""
    return int(wildcards.scatteritem.split("-of-")[1])


def part_threads(wildcards):
    """Return the threads of one of several jobs: its share of the cores."""
    return 4 if CLUSTER else max(1, CORES // parts_of(wildcards))


def of_search(amount):
    """Return a resource of the decoder for its GPU: on a cluster, if it queries a network. Jobs of a machine share it."""
    return lambda wildcards: amount if systems.networks_in_search(wildcards.system) else None


SEARCH_ON_DEVICE = {"device": DEVICE}
if CLUSTER and DEVICE == "cuda":
    SEARCH_ON_DEVICE |= {name: of_search(amount) for name, amount in ONE_GPU.items()}


def of_column(network, other):
    """Return a resource of the job of a column: one value for scores of a network, another one for others.

    A value may be a function of Snakemake.
    """

    def value(wildcards, input, attempt):
        chosen = network if COLUMNS[wildcards.column].network else other
        given = {"wildcards": wildcards, "input": input, "attempt": attempt}
        return chosen(**{name: given[name] for name in signature(chosen).parameters}) if callable(chosen) else chosen

    return value


# Jobs of columns that are not computed by a network have no GPU.
COLUMN_ON_DEVICE = {"device": DEVICE}
if DEVICE == "cuda":
    COLUMN_ON_DEVICE |= {name: of_column(amount, None) for name, amount in ONE_GPU.items()}
