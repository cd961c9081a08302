"""What the pages say of Slurm, and of torch under it: which test shows each sentence.

A sentence is found by a part of it. A test is named by its file below tests/, its function, and
where it stands for several cases, the case in brackets, as the file names it.
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """Why no test here shows a thing."""

    text: str


GPUS = Reason("it takes GPUs")
CGROUPS = Reason("it takes a site that confines jobs to their devices or CPUs")
NETWORK = Reason("it takes the network of a cluster")
SITE = Reason("a site does this by its own configuration")

_CLAIMS = "slurm/test_claims.py"
_LAUNCH = "slurm/test_launch.py"
_REQUEUE = "slurm/test_requeue.py"
_RULES = "slurm/test_rules.py"
_DOCS = "slurm/test_docs.py"
_REHEARSE = "slurm/test_rehearse.py"
_SANDBOX = "slurm/test_sandbox.py"
_FAULTS = "slurm/test_sandbox_faults.py"
_RELEASE = "slurm/test_release.py"
_SUBMIT = "slurm/test_submit.py"
_FAILURE = "slurm/test_failure.py"
_CHECK = "slurm/test_check.py"
_TORCH = "torch/test_claims.py"
_DDP = "torch/test_ddp_launch.py"
_RESUME = "torch/test_ddp_resume.py"
_SUPERVISOR = "programs/ddp/test_supervisor.py"

_TOLD = f"{_LAUNCH}::test_what_each_task_is_told"
_CPUS = f"{_CLAIMS}::test_cpus_of_a_task_are_handed_on_or_not"
_BATCH = f"{_CLAIMS}::test_the_batch_shell_says_that_it_is_rank_0"
_VERSIONS = f"{_LAUNCH}::test_the_bundled_entrypoint_meets"
_ONE_SHARE = f"{_TORCH}::test_a_sampler_with_a_fixed_rank_reads_one_share"
_SIGNALLED = f"{_TORCH}::test_torchrun_dies_of_a_signal"
_TWO_MINUTES = f"{_CLAIMS}::test_a_requeued_job_waits_two_minutes"
_EARLY = f"{_CLAIMS}::test_a_signal_goes_to_the_steps"
_LOST = "slurm/test_lost.py::test_the_job_ends_and_says_what_is_lost"

# page: part of a sentence: what shows it.
CLAIMS: dict[str, dict[str, str | tuple[str, ...] | Reason]] = {
    "README.md": {
        "for Slurm 20.11 to 26.05": (_VERSIONS, f"{_REQUEUE}::test_it_comes_back"),
        "set inside each task": _TOLD,
        "a rank that dies does not leave the others waiting": (
            f"{_LAUNCH}::test_a_dying_rank_ends_the_job_with_an_error",
            f"{_CLAIMS}::test_a_task_that_fails_ends_the_others_where_that_is_said",
        ),
    },
    "ci.md": {
        "each runs on a real Slurm, with as many nodes as it asks for": "slurm/test_ci.py::"
        "test_a_new_project_passes",
        "say `--slurm 23.11` to lint": Reason("the version that Ubuntu 24.04 has"),
        "Scripts that nobody rendered are rehearsed too": "slurm/test_ci.py::"
        "test_a_wrong_script_fails",
    },
    "faq.md": {
        "each task of the array is a job with a port of its own": f"{_LAUNCH}::"
        "test_array_tasks_have_ports_of_their_own",
        "It is Slurm's.": _TOLD,
        "Where the site confines tasks to their GPUs, NCCL can't go": GPUS,
        "All GPUs visible, and the device by local rank": _TOLD,
        "20.11 to 26.05.": (_VERSIONS, f"{_REQUEUE}::test_it_comes_back"),
        "Lightning takes Slurm's tasks": Reason("Lightning's own; it is not among the packages"),
    },
    "how-it-works.md": {
        "what Slurm refuses, and what Slurm would take for something else is an error here": (
            "unit/test_verdicts.py::test_verdict",
            "slurm/test_oracle.py::test_sbatch_understands_what_the_plan_says",
        ),
        "directives are read as sbatch reads them": "slurm/test_directive_oracle.py::"
        "test_any_block",
    },
    "reliability.md": {
        "any other failure; death by a signal": f"{_SUBMIT}::"
        "test_a_job_that_was_taken_whatever_sbatch_says",
        "Slurm doesn't have it, nor when the time is over": f"{_SUBMIT}::"
        "test_a_job_of_which_slurm_knows_nothing",
        "Slurm can't be asked for three minutes": f"{_SUBMIT}::test_a_job_that_may_have_been_taken",
        "may have forgotten a job that has ended": f"{_SUBMIT}::"
        "test_accounting_knows_a_job_that_the_controller_has_forgotten",
        "sbatch says one of Slurm's known refusals": (
            "unit/slurm/test_refusals.py::test_refusals",
            f"{_SUBMIT}::test_a_refused_job_takes_no_folder_from_another",
        ),
        "waits up to 20 s for the answer and tells it": f"{_SUBMIT}::"
        "test_an_interruption_waits_for_what_sbatch_says",
        "a second Ctrl-C ends the wait": f"{_SUBMIT}::test_an_interruption_while_sbatch_hangs",
        "the id on stderr, exit status 3": f"{_SUBMIT}::"
        "test_the_id_is_told_where_stdout_cannot_take_it",
        "or nobody could be told": f"{_SUBMIT}::"
        "test_an_id_that_nobody_could_be_told_is_told_by_the_next",
        "two submissions at once": f"{_SUBMIT}::test_two_at_once",
        "asks again for up to an hour": f"{_SUBMIT}::test_wait_outlives_a_controller_that_is_away",
        "`squeue` shows it as `%o`, `scontrol show job` as `Command=`, on 20.11 to 26.05": (
            f"{_SUBMIT}::test_each_kind_of_job_is_found"
        ),
        "The script's bytes, the comment and the job's variables stay": f"{_SUBMIT}::"
        "test_what_slurm_has_of_the_job_is_as_the_user_wrote_it",
        "prints that job's id and submits nothing": f"{_SUBMIT}::"
        "test_the_next_submission_knows_of_one_that_was_killed",
        "with other environment variables than now": f"{_SUBMIT}::"
        "test_another_job_is_not_taken_for_the_one_that_was_killed",
        "each job is there exactly once": "chaos/test_submit.py::"
        "test_each_job_is_there_once_and_the_truth_was_told",
    },
    "security.md": {
        "A value cannot end its directive, start a second one": "slurm/test_hostile.py::"
        "test_names_comments_and_paths_do_not_become_directives",
        "A list in `command` is passed on word by word": "slurm/test_hostile.py::"
        "test_words_and_variables_arrive_byte_for_byte",
    },
    "start.md": {
        "which is what `init_process_group()` does without arguments": f"{_LAUNCH}::"
        "test_a_plain_env_script_meets",
        "prints the job id and nothing else": f"{_SUBMIT}::test_the_id_alone_and_the_log_folder",
        "starts a real Slurm on your machine with pretend GPUs": f"{_SANDBOX}::"
        "test_a_job_has_a_task_for_each_gpu_of_each_node",
    },
    "launch/index.md": {
        "Slurm counts, binds and signals what srun starts": (
            f"{_CLAIMS}::test_a_step_says_which_task_it_is",
            f"{_LAUNCH}::test_the_jobs_signal_reaches_the_program_and_not_the_bash_around_it",
        ),
        "the master is the first node of the job, on a port of the job's own": _TOLD,
        "each task sees all GPUs that Slurm gave the job on its node": _TOLD,
        "set inside the task, where Slurm's own variables are the task's": (_TOLD, _BATCH),
        "a rank that fails ends the others": (
            f"{_LAUNCH}::test_a_dying_rank_ends_the_job_with_an_error[torchrun]",
            f"{_DDP}::test_spawn_ends_all_when_one_dies",
        ),
    },
    "launch/srun.md": {
        "Without `--nodes`, Slurm may put the tasks on any number": f"{_CLAIMS}::"
        "test_tasks_without_nodes_are_put_on_any_number",
        "`--gres=gpu:4` is per node": _TOLD,
        "The shell ends the job at the first line that fails": f"{_LAUNCH}::"
        "test_a_failing_set_up_line_ends_the_job_before_the_program",
        "else each rank starts as many threads as it sees CPUs": f"{_TORCH}::"
        "test_threads_where_nobody_says_how_many",
        "`MASTER_ADDR` is the first node, where rank 0 is": f"{_LAUNCH}::"
        "test_a_plain_env_script_meets",
        "Where a node's name does not resolve, its address is taken": f"{_LAUNCH}::"
        "test_a_node_whose_name_is_not_known",
        "`SLURM_PROCID` in the batch shell is 0, whatever the job's size": _BATCH,
        "The port lies below the kernel's ephemeral ports": _TOLD,
        "another one for each job, array task and step, so two jobs on a node do not meet": (
            f"{_LAUNCH}::test_two_jobs_at_once_on_the_same_nodes_do_not_meet"
        ),
        "`$RANK` and `$SLURM_PROCID` in it mean the task's own": "slurm/test_hostile.py::"
        "test_a_command_string_is_bash_in_each_task_and_nowhere_else",
        "Variables of a job in which you called `sbatch` would change this job's step": (
            f"{_LAUNCH}::test_a_job_submitted_from_inside_another_is_not_changed_by_it"
        ),
        "Slurm 22.05 and 23.02 do not pass `--cpus-per-task` on, and a rank would count as one CPU"
        "": _CPUS,
        "when a rank dies, the others end": f"{_CLAIMS}::"
        "test_a_task_that_fails_ends_the_others_where_that_is_said",
        "`--wait=0`: none is killed for finishing later than another": f"{_CLAIMS}::"
        "test_a_task_that_ends_early_ends_no_other",
    },
    "launch/torchrun.md": {
        "With four, there would be 4 x 4 ranks on a node": f"{_RULES}::"
        "test_the_example_shows_the_fault[double-launch]",
        "Rank 0 is on the first node, where `MASTER_ADDR` points to": f"{_LAUNCH}::"
        "test_a_plain_env_script_meets[torchrun static 2x4]",
        "lets the torchruns meet by themselves and number the nodes": f"{_LAUNCH}::"
        "test_a_plain_env_script_meets[torchrun c10d 2x4]",
        "torchrun's own process dies of a signal": _SIGNALLED,
    },
    "launch/spawn.md": {
        "Each node gets one process, the size of the run and the number of its node": f"{_LAUNCH}::"
        "test_spawn_is_told_its_share_but_no_rank",
        "it counts from 0 on each node": f"{_TORCH}::test_spawn_counts_from_0",
        "learns only how the parent ended": f"{_DDP}::"
        "test_spawn_ends_with_the_code_of_the_rank_that_failed",
    },
    "launch/cpu.md": {
        "may leave nodes uneven: three here and two there": f"{_LAUNCH}::"
        "test_local_world_size_of_uneven_nodes",
        "`OMP_NUM_THREADS` is the CPUs of a task": _TOLD,
        "gloo takes the one of the node's name": NETWORK,
    },
    "launch/data-parallel.md": {
        "One task, all four GPUs visible, and no rank or address": f"{_LAUNCH}::"
        "test_plain_is_one_process_that_sees_every_gpu",
        "A second node trains a second copy of the model": f"{_DOCS}::test_what_each_task_is_told",
        "In every step it copies the model from GPU 0 to the others": GPUS,
    },
    "launch/single-gpu.md": {
        "so that Slurm measures it and can send it signals": (
            f"{_REQUEUE}::test_it_comes_back[the signal]",
            "slurm/test_sandbox_accounting.py::test_sacct_shows_a_job_that_has_ended",
        ),
        "The same program with `launcher: srun` gets `RANK=0 WORLD_SIZE=1`": f"{_LAUNCH}::"
        "test_one_task_is_rank_0_of_1",
    },
    "migrate/index.md": {
        "seen with the versions they name, on Slurm 22.05": Reason("other programs, tried by hand"),
    },
    "migrate/scripts.md": {
        "what Slurm reads from it is what it read before": "slurm/test_import.py::"
        "test_sbatch_reads_the_same_from_a_script_and_its_import",
    },
    "migrate/submitit.md": {
        "which Slurm 22.05 and 23.02 do not pass on": _CPUS,
        "submitit (1.5.4) writes right directives": Reason("another program, tried by hand"),
    },
    "migrate/torchx.md": {
        "not by `--export=K=V`, which splits at commas": f"{_CLAIMS}::"
        "test_a_list_to_export_ends_at_a_comma",
        "torchx (0.7.0) writes a heterogeneous job": Reason("another program, tried by hand"),
    },
    "migrate/lightning.md": {
        "`devices` and `num_nodes` have to be what Slurm starts": Reason(
            "Lightning's own; it is not among the packages"
        ),
        "catches USR1, saves, and calls `scontrol requeue` itself": Reason(
            "Lightning's own; it is not among the packages"
        ),
    },
    "questions/index.md": {
        "what each task is told on a real Slurm": f"{_DOCS}::test_what_each_task_is_told",
        "One `srun` starts a task per GPU, and each task sees all GPUs of its node": _TOLD,
    },
    "questions/all-on-one-gpu.md": {
        "one, bound by Slurm (`--gpus-per-task=1`, from 21.08 on)": f"{_CLAIMS}::"
        "test_a_gpu_for_each_task",
        "Slurm has bound each to its GPU already": f"{_DOCS}::test_what_each_task_is_told",
        "`CUDA_VISIBLE_DEVICES` is not read again": GPUS,
        "it takes a GPU of somebody else's job": GPUS,
        "NCCL between processes that do not see each other's GPUs": GPUS,
    },
    "questions/no-faster.md": {
        "`srun` has started two of them": f"{_DOCS}::test_what_each_task_is_told",
        "In each step it copies the model from GPU 0": GPUS,
    },
    "questions/not-on-several-gpus.md": {
        "On the second node there is rank 4, but no GPU 4": f"{_DOCS}::test_what_each_task_is_told",
        "A `DistributedSampler` with `rank=0` gives every rank the same share": _ONE_SHARE,
        "`set_epoch` gives each epoch an order of its own": f"{_TORCH}::"
        "test_a_sampler_without_set_epoch_repeats_itself",
    },
    "questions/only-one-gpu.md": {
        "Slurm gives GPUs to the job; it does not share a program out": f"{_DOCS}::"
        "test_what_each_task_is_told",
        "on one node it works, on two the second waits for itself": f"{_REHEARSE}::"
        "test_what_is_wrong_is_named[110-master-addr-localhost]",
        "With a fixed port the second job on the node fails": f"{_TORCH}::"
        "test_ranks_that_are_told_the_same",
        "Slurm has set it already, to GPUs that are yours": f"{_SANDBOX}::test_jobs_share_a_node",
    },
    "questions/other-nodes.md": {
        "There `SLURM_PROCID` is 0": _BATCH,
        "One gets the port on its node; the rest fail": f"{_TORCH}::"
        "test_ranks_that_are_told_the_same",
        "No `--nodes`: Slurm may place the tasks on any number of nodes": f"{_CLAIMS}::"
        "test_tasks_without_nodes_are_put_on_any_number",
        "`--ntasks` is the number of tasks in all": f"{_CLAIMS}::"
        "test_a_number_of_tasks_wins_over_that_of_a_node",
        "It never does. A process sees the GPUs of its own node": _TOLD,
    },
    "entrypoint/index.md": {
        "It runs under srun, torchrun, spawn, and without any launcher": (
            _VERSIONS,
            f"{_DDP}::test_plain",
        ),
        "A wrong launch ends with status 78 and a reason": "programs/ddp/test_entry.py::"
        "test_what_is_wrong_is_said_with_why_and_fix",
        "`init_process_group()` in it finds the others": f"{_DDP}::"
        "test_a_step_runs_a_script_that_makes_its_own_groups",
    },
    "entrypoint/failures.md": {
        "a new run of the job removes it": f"{_SUPERVISOR}::"
        "test_a_file_of_an_earlier_run_is_removed",
        "A cancelled job has not failed": f"{_SUPERVISOR}::test_a_cancelled_run_has_not_failed",
        "or at the ports that `srun --resv-ports` reserved": (
            f"{_CLAIMS}::test_ports_are_reserved_for_a_step",
            f"{_SUPERVISOR}::test_reserved_ports_are_used",
        ),
        "The job ends with the status of that rank, within seconds": (
            f"{_FAILURE}::test_a_killed_rank",
            f"{_FAILURE}::test_a_status_of_its_own",
        ),
        "A rank that fails because it lost another one is not the first": f"{_FAILURE}::"
        "test_an_exception_and_not_those_it_caused",
        "A supervisor that is silent for 15 seconds": (
            f"{_SUPERVISOR}::test_a_silent_node_is_lost",
            _LOST,
        ),
        "Then the stacks of all ranks are written": f"{_DDP}::test_a_hang_names_the_line",
        "an occupied `MASTER_PORT` refuses no job": f"{_DDP}::"
        "test_a_port_that_another_program_holds_is_passed_by",
    },
    "entrypoint/mistakes.md": {
        "Two ranks on one node with two CPUs hear": "torch/test_docs_mistakes.py::"
        "test_the_wrong_one_is_told_while_it_trains",
        "no such GPU on the second node": f"{_DOCS}::test_what_each_task_is_told",
    },
    "entrypoint/requeue.md": {
        "and so do `scancel --signal=TERM ID` and USR1 with `--batch`": (
            f"{_REQUEUE}::test_it_comes_back[TERM to the program]",
            f"{_REQUEUE}::test_it_comes_back[the signal to the batch shell]",
        ),
        "or, without such a file, if the run lasted a minute": f"{_REQUEUE}::"
        "test_it_ends_where_it_makes_no_progress",
        "Slurm itself starts a job again when it finds a node down": f"{_CLAIMS}::"
        "test_slurm_starts_the_job_of_a_lost_node_again",
        "but that takes it minutes": f"{_CLAIMS}::test_how_long_slurm_waits_by_itself",
        "Python drops its handlers while it ends": f"{_RESUME}::test_a_late_signal_spoils_nothing",
        "Slurm sends USR1 180 seconds (up to 240) before the time limit, or TERM when the job is "
        "preempted": (
            _EARLY,
            f"{_REQUEUE}::test_it_comes_back[the time limit]",
            f"{_REQUEUE}::test_it_comes_back[preemption]",
        ),
        "All stop at the same step, save, and end with status 75": "slurm/test_resume.py::"
        "test_the_losses_are_those_of_an_untouched_run",
        "The job starts again some two minutes later and appends to its log": (
            _TWO_MINUTES,
            f"{_REQUEUE}::test_it_comes_back",
        ),
        "five runs in a row got nowhere": f"{_REQUEUE}::test_it_ends_where_it_makes_no_progress",
        "`scancel ID` ends it for good; `scancel --signal=USR1 ID` makes it save and come back": (
            f"{_REQUEUE}::test_it_stays_away[scancel]",
            f"{_REQUEUE}::test_it_comes_back[the signal]",
        ),
        "the losses after a restart are those of a run that was never stopped": (
            "slurm/test_resume.py::test_the_losses_are_those_of_an_untouched_run"
        ),
        "brings the job back when the entrypoint has lost a node": f"{_REQUEUE}::"
        "test_it_comes_back_where_a_node_is_lost",
        "A program finds the signal's name in `SLURMGEN_SIGNAL`": f"{_REQUEUE}::"
        "test_it_comes_back[USR2]",
        "whose own process dies of the signal": (
            _SIGNALLED,
            f"{_TORCH}::test_torchrun_makes_a_failure_of_75",
        ),
    },
    "entrypoint/usage.md": {
        "`slurmgen-JOBID.usage.jsonl`": "unit/ddp/test_usage.py::test_where_the_file_is",
        "more data loader workers than CPUs": "programs/ddp/test_checks.py::test_workers_and_cpus",
    },
    "commands/cluster.md": {
        "Your cluster can write its profile itself, for any user, on Slurm 20.11 to 26.05, with "
        "accounting or without": (
            f"{_CHECK}::test_detect_keep_and_diff",
            "unit/cluster/test_live.py::test_the_profile",
            "slurm/test_check_accounts.py::test_detect_knows_them",
        ),
    },
    "commands/lint.md": {
        "Some rules hold on some versions of Slurm only. They ask the Slurm of the machine; "
        "`--slurm 22.05`": f"{_CLAIMS}::test_cpus_of_a_task_are_handed_on_or_not",
    },
    "commands/rehearse.md": {
        "whether every rank is there once, every GPU is used once": f"{_REHEARSE}::"
        "test_every_example_is_right",
        "whether the signal before the time limit comes to anybody": f"{_REHEARSE}::"
        "test_what_is_wrong_is_named[168-signal-without-srun]",
        "is told to save, goes back into the queue, and is run again": f"{_REHEARSE}::"
        "test_a_job_that_is_told_to_save_comes_back",
        "`--real` runs it until it ends or for `--limit` seconds": f"{_REHEARSE}::"
        "test_a_real_program_is_ended_after_a_while",
        "Of an array 16 tasks are run at most": "unit/sandbox/rehearsal/test_shape.py::"
        "test_of_a_large_array_some_tasks_run",
        "Root and ordinary users can rehearse, also where Slurm is not installed but unpacked": (
            f"{_REHEARSE}::test_it_works_for",
            f"{_RELEASE}::test_an_ordinary_user_has_it_too",
        ),
        "even when the rehearsal is killed": f"{_REHEARSE}::test_nothing_is_left_whenever_it_ends",
        "On two cores, with Slurm 22.05": Reason("measured by benchmarks/rehearse.py"),
        "`--slurm 24.11` rehearses in another version": f"{_RELEASE}::"
        "test_rehearse_on_another_version",
        "[20.11, 22.05, 24.11 or 26.05]": f"{_RELEASE}::test_a_version_that_debian_does_not_have",
    },
    "commands/render.md": {
        "It makes the folder of the log": f"{_SUBMIT}::test_the_id_alone_and_the_log_folder",
    },
    "commands/sandbox.md": {
        "each node has a network of its own": f"{_FAULTS}::"
        "test_ranks_meet_by_name_across_addresses",
        "`up --grace 60` jobs can be preempted": f"{_FAULTS}::"
        "test_a_preempted_job_is_told_and_comes_back",
        "as root or as an ordinary user": f"{_SANDBOX}::test_it_works_for",
        "takes partitions, limits, nodes and GPU types from a profile": "slurm/test_like.py::"
        "test_detect_gives_the_shape_back",
        "`sandbox cut`, `kill` and `preempt` make it fail": f"{_FAULTS}::"
        "test_commands_from_cut_to_revive",
        "`--slurm 20.11|22.05|24.11|26.05` starts one of that version": f"{_RELEASE}::"
        "test_the_verbs_reach_a_sandbox_of_another_version",
        "An ordinary user takes user namespaces; a container has to allow mounts": (
            f"{_RELEASE}::test_an_ordinary_user_has_it_too",
            f"{_RELEASE}::test_where_mounts_are_not_allowed",
        ),
        "a task gets its `CUDA_VISIBLE_DEVICES`, but torch finds no device": (
            _TOLD,
            f"{_DOCS}::test_the_right_job_trains",
        ),
    },
}

# Pages that say nothing of Slurm's doing.
WITHOUT = {
    "index.md": "says where to go; its job is that of the page on srun",
    "commands/import.md": "a script becomes a job file: its blocks are run by test_pages.py",
    "commands/index.md": "a list of commands",
    "commands/init.md": "files that a project starts with",
    "commands/plan.md": "a plan, which asks no Slurm",
    "commands/python.md": "the same verbs from Python",
    "commands/template.md": "how scripts are laid out",
    "entrypoint/sharding.md": "FSDP2, which asks no Slurm: torch/test_ddp_shard.py",
}


def _refused(rule: str) -> str:
    return f"{_RULES}::test_slurm_refuses_the_example[{rule}]"


def _read(rule: str) -> str:
    return f"{_RULES}::test_slurm_reads_the_example_otherwise[{rule}]"


def _faulty(rule: str) -> str:
    return f"{_RULES}::test_the_example_shows_the_fault[{rule}]"


def _rehearsed(case: str) -> str:
    return f"{_REHEARSE}::test_what_is_wrong_is_named[{case}]"


def _claimed(test: str) -> str:
    return f"{_CLAIMS}::{test}"


_OTHER = "another program's doing, which lint knows from its documents"

# What a rule says under "Why is this bad".
RULES: dict[str, str | tuple[str, ...] | Reason] = {
    "abbreviated-option": _read("abbreviated-option"),
    "all-ranks-save": Reason("a file system's doing"),
    "array-log-collision": _claimed("test_all_tasks_of_an_array_in_one_log"),
    "array-pattern-no-array": _claimed("test_the_index_of_no_array"),
    "background-no-wait": _claimed("test_what_is_left_in_the_background_is_killed"),
    "bad-gres": _refused("bad-gres"),
    "bad-option-value": (
        _rehearsed("030-mem-bad-unit"),
        _claimed("test_words_that_sbatch_reads_over"),
    ),
    "broken-continuation": _faulty("broken-continuation"),
    "cluster-mismatch": (
        f"{_REHEARSE}::test_what_a_cluster_does_not_have_is_named[040-gres-type-case]"
    ),
    "conda-not-initialised": _rehearsed("154-conda-activate-plain"),
    "container-gpu-mask": (_claimed("test_gpus_are_named_for_every_vendor"),),
    "container-no-gpu-flag": GPUS,
    "cpu-count-not-affinity": CGROUPS,
    "cpus-not-inherited": _CPUS,
    "crlf-line-endings": _refused("crlf-line-endings"),
    "cuda-visible-hardcoded": _claimed(
        "test_a_step_has_its_gpus_whatever_the_batch_shell_says",
    ),
    "cvd-not-int": GPUS,
    "dataparallel-fallback": GPUS,
    "ddp-not-wrapped": "torch/test_docs_mistakes.py::test_the_wrong_one_is_told_while_it_trains",
    "deepspeed-needs-hostfile": Reason(_OTHER),
    "device-global-rank": (f"{_DOCS}::test_what_each_task_is_told",),
    "directive-after-command": _read("directive-after-command"),
    "directive-continuation": _read("directive-continuation"),
    "directive-not-recognised": _read("directive-not-recognised"),
    "directive-stray-text": _refused("directive-stray-text"),
    "directive-unclosed-quote": _refused("directive-unclosed-quote"),
    "directive-variable": _read("directive-variable"),
    "double-launch": _faulty("double-launch"),
    "duplicate-option": (
        _rehearsed("034-duplicate-export"),
        "slurm/test_directive_oracle.py::test_what_sbatch_takes",
    ),
    "env-var-unset": _claimed("test_variables_of_what_was_not_asked_for"),
    "exit-status-masked": _claimed("test_the_last_command_is_the_job_s_state"),
    "export-none-srun": _claimed("test_a_step_of_a_job_without_environment_has_no_path"),
    "fixed-port": f"{_TORCH}::test_ranks_that_are_told_the_same",
    "gloo-ifname-syntax": f"{_TORCH}::test_an_address_for_an_interface",
    "gpu-bind-hides-peers": _claimed("test_a_gpu_for_each_task"),
    "gpu-bound-local-rank": _claimed("test_a_gpu_for_each_task"),
    "gpu-isolated-nccl": CGROUPS,
    "gpu-not-requested": _claimed("test_a_node_to_oneself_is_without_its_gpus"),
    "gpu-request-conflict": _claimed("test_two_ways_to_ask_for_gpus"),
    "gpus-idle": f"{_DOCS}::test_what_each_task_is_told",
    "head-ip-lookup": _rehearsed("115-hostname-I-many"),
    "hetjob-srun-group": _claimed("test_a_plain_srun_starts_one_component"),
    "ifname-loopback": NETWORK,
    "inherited-env": _claimed("test_the_submitting_shell_s_variables_come_along"),
    "launch-node-ipaddr": _claimed("test_the_address_of_srun_is_none_of_the_batch_shell"),
    "lightning-torchrun-in-slurm": Reason(_OTHER),
    "local-rank-arg": f"{_TORCH}::test_the_old_launcher_passes_an_option_with_a_dash",
    "log-dir-missing": _claimed("test_the_folder_of_a_log_is_made_or_not"),
    "master-addr-localhost": (
        _rehearsed("110-master-addr-localhost"),
        f"{_TORCH}::test_how_long_ranks_wait",
    ),
    "master-addr-per-task": _claimed("test_a_step_has_the_host_name_of_the_batch_shell"),
    "mem-unit-missing": _read("mem-unit-missing"),
    "mig-multi-gpu": GPUS,
    "missing-shebang": _refused("missing-shebang"),
    "multinode-launcher-no-srun": _rehearsed("054-torchrun-multinode-no-srun"),
    "mutually-exclusive-options": _refused("mutually-exclusive-options"),
    "nccl-fallback-left-on": NETWORK,
    "nested-srun-no-overlap": _claimed("test_a_step_in_a_step_waits"),
    "no-distributed-sampler": (
        "programs/ddp/test_checks.py::test_each_rank_goes_through_all_samples"
    ),
    "no-set-device": GPUS,
    "no-set-epoch": f"{_TORCH}::test_a_sampler_without_set_epoch_repeats_itself",
    "nodelist-mismatch": _refused("nodelist-mismatch"),
    "nodelist-unexpanded": _claimed("test_variables_that_are_no_number"),
    "nounset-conda": _rehearsed("156-nounset-conda"),
    "ntasks-contradiction": _claimed("test_a_number_of_tasks_wins_over_that_of_a_node"),
    "ntasks-fewer-than-nodes": _claimed("test_fewer_tasks_than_nodes"),
    "parallel-steps-serialise": (
        _claimed("test_steps_side_by_side"),
        _claimed("test_fewer_gpus_for_a_step"),
    ),
    "port-ephemeral": Reason("the kernel's doing, now and then"),
    "port-octal": _rehearsed("126-port-octal"),
    "port-out-of-range": f"{_TORCH}::test_torchrun_takes_no_port_of_17_bits",
    "port-per-process": (
        _faulty("port-per-process"),
        f"{_TORCH}::test_each_names_a_port_of_its_own",
    ),
    "rank-env-not-set": f"{_TORCH}::test_a_rank_that_nobody_has_set",
    "rank-expanded-early": (_faulty("rank-expanded-early"), _BATCH),
    "requeue-whole-array": _claimed("test_the_last_task_of_an_array_has_the_id_of_all"),
    "rocr-hip-both-set": _claimed("test_gpus_are_named_for_every_vendor"),
    "sampler-rank-literal": _ONE_SHARE,
    "scontrol-in-container": Reason("an image's doing"),
    "script-dir-spool": _claimed("test_a_script_is_run_from_the_spool"),
    "script-too-large": _claimed("test_a_script_that_sbatch_does_not_take"),
    "sh-shebang-bashism": _faulty("sh-shebang-bashism"),
    "short-option-equals": _claimed("test_an_option_in_the_spelling_of_another"),
    "signal-mismatch": _claimed("test_a_signal_that_a_program_does_not_catch_ends_it"),
    "signal-not-delivered": (
        _EARLY,
        _claimed("test_a_signal_to_the_shell_goes_to_it_alone"),
        _claimed("test_a_trap_waits_for_the_command_in_front_of_it"),
        _claimed("test_a_shell_without_a_trap_ends_with_the_job"),
    ),
    "slurm-var-not-int": (
        _claimed("test_variables_that_are_no_number"),
        f"{_TORCH}::test_torchrun_reads_no_list",
    ),
    "spawn-rank-no-node-offset": f"{_TORCH}::test_spawn_counts_from_0",
    "srun-export-drops-env": _faulty("srun-export-drops-env"),
    "srun-missing": (_faulty("srun-missing"), _BATCH),
    "srun-narrows-gpus": _faulty("srun-narrows-gpus"),
    "srun-task-count-implicit": _claimed("test_a_step_without_a_count_takes_all_cpus"),
    "standalone-multinode": _rehearsed("063-torchrun-nnodes-missing"),
    "tasks-exceed-gpus": _claimed("test_more_tasks_than_gpus_see_the_same"),
    "tasks-gpus-mismatch": Reason(_OTHER),
    "time-in-minutes": _read("time-in-minutes"),
    "uneven-gpus": _claimed("test_a_sum_of_gpus_is_spread_as_they_are_free"),
    "unknown-option": _claimed("test_an_option_in_the_spelling_of_another"),
    "unused-suppression": Reason("lint's own"),
    "workers-exceed-cpus": f"{_TORCH}::test_more_workers_than_cpus_are_told",
    "world-size-mismatch": f"{_TORCH}::test_a_world_that_is_too_large",
}
