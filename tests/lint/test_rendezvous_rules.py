"""What the rules about ranks, addresses and ports find, in many dresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurmgen.cluster.profile import Profile
from slurmgen.lint.facts.ports import faults
from slurmgen.lint.job import load
from tests.lint.asking import NODES, ONE, TASKS, WHOLE, found, in_python

if TYPE_CHECKING:
    from pathlib import Path

# --- ranks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "body", "lines"),
    [
        (TASKS, "export RANK=$SLURM_PROCID\nsrun python train.py\n", [5]),
        (TASKS, "RANK=${SLURM_PROCID} LOCAL_RANK=$SLURM_LOCALID srun python train.py\n", [5]),
        (TASKS, "export RANK=$((SLURM_PROCID))\nsrun ./run.sh\n", [5]),
        (TASKS, "export RANK=`echo $SLURM_PROCID`\nsrun python train.py\n", [5]),
        (TASKS, "export GLOBAL_RANK=$SLURM_PROCID\nsrun --label python train.py\n", [5]),
        (TASKS, "RANK=$SLURM_PROCID\nexport RANK\nsrun python train.py\n", [5]),
        (TASKS, "set -a\nRANK=$SLURM_PROCID\nsrun python train.py\n", [6]),
        (TASKS, "rank=$SLURM_PROCID\nsrun python train.py --rank $rank\n", [5]),
        (TASKS, "srun python train.py --rank $SLURM_PROCID\n", [5]),
        (TASKS, 'srun bash -c "RANK=$SLURM_PROCID python train.py"\n', [5]),
        (TASKS, "srun env RANK=$SLURM_PROCID python train.py\n", [5]),
        (TASKS, "srun --export=ALL,RANK=$SLURM_PROCID python train.py\n", [5]),
        (TASKS, "srun bash <<EOF\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\n", [6]),
        (TASKS, "srun --output=log_$SLURM_PROCID.txt python train.py\n", [5]),
        (TASKS, "cat > run.sh <<EOF\nRANK=$SLURM_PROCID python a.py\nEOF\nsrun bash run.sh\n", [6]),
        (TASKS, "CMD=(python train.py --rank $SLURM_PROCID)\nsrun ${CMD[@]}\n", [5]),
        (TASKS, "ARGS='--x 1'\nARGS+=\" --rank $SLURM_PROCID\"\nsrun python a.py $ARGS\n", [6]),
        (TASKS, "srun singularity exec --env RANK=$SLURM_PROCID a.sif python train.py\n", [5]),
        (TASKS, "export RANK=0\nsrun python train.py\n", [5]),
        (TASKS, "mpirun -np 8 -x RANK=$SLURM_PROCID python train.py\n", [5]),
        (NODES, "ssh n2 torchrun --nnodes 2 --node_rank=$SLURM_NODEID a.py\n", [5]),
        (TASKS, "mpirun -np 8 python train.py --local_rank $SLURM_LOCALID\n", [5]),
        (NODES, "srun torchrun --nnodes 2 --node_rank $SLURM_NODEID a.py\n", [5]),
        (NODES, "srun torchrun --nnodes=2 --node-rank=${SLURM_NODEID:-0} a.py\n", [5]),
        (NODES, "srun torchrun --nnodes 2 \\\n  --node_rank 0 a.py\n", [6]),
        (
            NODES,
            (
                "export NODE_RANK=$SLURM_NODEID\nsrun bash -c 'torchrun --nnodes 2 "
                "--node_rank $NODE_RANK a.py'\n"
            ),
            [5],
        ),
        (NODES, "srun accelerate launch --num_machines 2 --machine_rank $SLURM_NODEID a.py\n", [5]),
        (NODES, 'L="torchrun --nnodes 2 --node_rank $SLURM_PROCID"\nsrun bash -c "$L a.py"\n', [5]),
        (
            NODES,
            (
                "for n in a b; do\n  srun -N1 -n1 -w $n torchrun --nnodes=2 "
                "--node_rank=$SLURM_NODEID a.py &\ndone\nwait\n"
            ),
            [6],
        ),
        # Read where it should be, or by nobody, or for one task.
        (TASKS, "srun bash -c 'RANK=$SLURM_PROCID python train.py'\n", []),
        (TASKS, 'srun bash -c "RANK=\\$SLURM_PROCID python train.py"\n', []),
        (TASKS, "srun bash <<'EOF'\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\n", []),
        (TASKS, 'echo "rank $SLURM_PROCID"\nsrun python train.py\n', []),
        (TASKS, "srun echo $SLURM_PROCID\n", []),
        (TASKS, "RANK=$SLURM_PROCID\nsrun python train.py\n", []),
        (TASKS, "export RANK=$SLURM_PROCID\nsrun -n1 -N1 python train.py\n", []),
        (TASKS, "srun --output=log_%t.txt python train.py\n", []),
        (TASKS, "export RANK=$SLURM_PROCID\nunset RANK\nsrun python train.py\n", []),
        (TASKS, "export RANK=$SLURM_PROCID\nsrun bash -c 'RANK=$SLURM_PROCID python a.py'\n", []),
        (
            NODES,
            'L="torchrun --nnodes 2 --node_rank \\$SLURM_PROCID"\nsrun bash -c "$L a.py"\n',
            [],
        ),
        (
            NODES,
            (
                "i=0\nfor n in a b; do\n  srun -N1 -n1 -w $n torchrun --nnodes=2 "
                "--node_rank=$i a.py &\n  i=$((i+1))\ndone\nwait\n"
            ),
            [],
        ),
        (ONE, "export RANK=$SLURM_PROCID\nsrun python train.py\n", []),
        (ONE, "torchrun --nnodes=1 --node_rank=0 --nproc_per_node=2 train.py\n", []),
    ],
)
def test_a_rank_that_the_batch_shell_expands(head: str, body: str, lines: list[int]) -> None:
    assert found("rank_expanded_early", head + body) == lines


# --- the master address ----------------------------------------------------------------------

INSIDE = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py"


@pytest.mark.parametrize(
    ("head", "body", "lines"),
    [
        (TASKS, "export MASTER_ADDR=localhost\nsrun python train.py\n", [5]),
        (TASKS, 'export MASTER_ADDR="127.0.0.1"\nsrun ./train.sh\n', [5]),
        (TASKS, "export MASTER_ADDR=${MASTER_ADDR:-localhost}\nsrun python train.py\n", [5]),
        (TASKS, "MASTER_ADDR=::1 srun python train.py\n", [5]),
        (TASKS, f"srun bash -c 'MASTER_ADDR=localhost {INSIDE}'\n", [5]),
        (TASKS, "srun --export=ALL,MASTER_ADDR=localhost python train.py\n", [5]),
        (TASKS, "srun python train.py --dist-url tcp://127.0.0.1:23456\n", [5]),
        (TASKS, "srun python train.py --dist_url=tcp://localhost:23456\n", [5]),
        (NODES, "srun torchrun --nnodes=2 --rdzv_endpoint=localhost:29400 a.py\n", [5]),
        (NODES, "srun torchrun --nnodes=2 --master_addr 0.0.0.0 a.py\n", [5]),
        (NODES, "H=localhost\nsrun torchrun --nnodes=2 --rdzv-endpoint=$H:29400 a.py\n", [5]),
        (NODES, "srun accelerate launch --num_machines 2 --main_process_ip localhost a.py\n", [5]),
        (
            NODES,
            "srun python -m torch.distributed.launch --nnodes 2 --master_addr=localhost a.py\n",
            [5],
        ),
        (NODES, "deepspeed --hostfile h --master_addr localhost a.py\n", [5]),
        (ONE, "export MASTER_ADDR=localhost\nsrun python train.py\n", []),
        (TASKS, "export MASTER_ADDR=localhost\nsrun -N1 -n4 python train.py\n", []),
        (
            TASKS,
            "export MASTER_ADDR=localhost\nexport MASTER_ADDR=$(hostname)\nsrun python a.py\n",
            [],
        ),
        (
            TASKS,
            (
                "if [ $N = 1 ]; then export MASTER_ADDR=localhost; else export "
                "MASTER_ADDR=$(hostname); fi\nsrun python a.py\n"
            ),
            [],
        ),
        (
            NODES,
            (
                "export MASTER_ADDR=localhost\nsrun torchrun --nnodes=2 "
                "--rdzv_endpoint=$(hostname):29400 a.py\n"
            ),
            [],
        ),
        (NODES, "vllm serve --host 127.0.0.1 &\nsrun python train.py\n", []),
    ],
)
def test_localhost_as_the_master(head: str, body: str, lines: list[int]) -> None:
    assert found("master_addr_localhost", head + body) == lines


RUN = "srun python train.py\n"
SETUP = "import os, socket, argparse, torch.distributed as dist\n"


@pytest.mark.parametrize(
    ("head", "program", "lines"),
    [
        (TASKS, 'os.environ["MASTER_ADDR"] = "localhost"\ndist.init_process_group("nccl")', [2]),
        (TASKS, 'os.environ.setdefault("MASTER_ADDR", "127.0.0.1")', [2]),
        (TASKS, 'dist.init_process_group("nccl", init_method="tcp://localhost:23456")', [2]),
        (TASKS, 'dist.init_process_group("gloo", "tcp://127.0.0.1:%d" % 4000)', [2]),
        (
            TASKS,
            (
                'p = argparse.ArgumentParser()\np.add_argument("--dist-url", '
                'default="tcp://localhost:1")\na = p.parse_args()\n'
                'dist.init_process_group("nccl", init_method=a.dist_url)'
            ),
            [5],
        ),
        (
            TASKS,
            (
                'addr = os.environ.get("MASTER_ADDR", "localhost")\n'
                'dist.init_process_group("nccl", init_method=f"tcp://{addr}:4000")'
            ),
            [3],
        ),
        (ONE, 'os.environ["MASTER_ADDR"] = "localhost"', []),
        (TASKS, 'os.environ["MASTER_ADDR"] = os.environ["HEAD"]', []),
        (
            TASKS,
            'if "SLURM_JOB_ID" not in os.environ:\n    os.environ["MASTER_ADDR"] = "localhost"',
            [],
        ),
    ],
)
def test_localhost_in_the_program(
    head: str, program: str, lines: list[int], tmp_path: Path
) -> None:
    given = in_python("master_addr_localhost", head + RUN, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


@pytest.mark.parametrize(
    ("head", "body", "lines"),
    [
        (TASKS, f"srun bash -c 'MASTER_ADDR=$(hostname) {INSIDE}'\n", [5]),
        (TASKS, f"srun bash -c 'export MASTER_ADDR=`hostname -s`; {INSIDE}'\n", [5]),
        (TASKS, f"srun bash -c 'export MASTER_ADDR=$SLURMD_NODENAME; {INSIDE}'\n", [5]),
        (TASKS, f"srun bash -c 'export MASTER_ADDR=$HOSTNAME; {INSIDE}'\n", [5]),
        (TASKS, f"srun bash <<'EOF'\nexport MASTER_ADDR=$(hostname -i)\n{INSIDE}\nEOF\n", [6]),
        (TASKS, f'srun bash -c "MASTER_ADDR=\\$(hostname) {INSIDE}"\n', [5]),
        (
            TASKS,
            "srun bash -c 'h=$(hostname -I | cut -d\" \" -f1); MASTER_ADDR=$h python a.py'\n",
            [5],
        ),
        (NODES, "srun bash -c 'torchrun --nnodes=2 --rdzv_endpoint=$(hostname):29400 a.py'\n", [5]),
        (TASKS, "export MASTER_ADDR=$(hostname)\nsrun python train.py\n", []),
        (TASKS, f'srun bash -c "MASTER_ADDR=$(hostname) {INSIDE}"\n', []),
        (
            TASKS,
            (
                "srun bash -c 'MASTER_ADDR=$(scontrol show hostname $SLURM_NODELIST | head -n1) "
                "python a.py'\n"
            ),
            [],
        ),
        (ONE, f"srun bash -c 'MASTER_ADDR=$(hostname) {INSIDE}'\n", []),
        (NODES, "srun torchrun --nnodes=2 --rdzv_endpoint=$(hostname):29400 a.py\n", []),
        (TASKS, "srun bash -c 'echo $(hostname); python train.py'\n", []),
    ],
)
def test_each_task_its_own_master(head: str, body: str, lines: list[int]) -> None:
    assert found("master_addr_per_task", head + body) == lines


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ('os.environ["MASTER_ADDR"] = socket.gethostname()', [2]),
        ('os.environ["MASTER_ADDR"] = socket.gethostbyname(socket.gethostname())', [2]),
        ('os.environ["MASTER_ADDR"] = os.environ["SLURMD_NODENAME"]', [2]),
        (
            'h = socket.getfqdn()\ndist.init_process_group("nccl", init_method=f"tcp://{h}:4000")',
            [3],
        ),
        (
            (
                'if int(os.environ["SLURM_PROCID"]) == 0:\n'
                '    os.environ["MASTER_ADDR"] = socket.gethostname()'
            ),
            [],
        ),
        (
            (
                "from mpi4py import MPI\n"
                'os.environ["MASTER_ADDR"] = MPI.COMM_WORLD.bcast(socket.gethostname(), root=0)'
            ),
            [],
        ),
        (
            (
                'import subprocess\nh = subprocess.check_output("hostname").decode().strip()\n'
                'os.environ["MASTER_ADDR"] = h'
            ),
            [4],
        ),
        ("print(socket.gethostname())", []),
    ],
)
def test_each_process_its_own_master(program: str, lines: list[int], tmp_path: Path) -> None:
    given = in_python("master_addr_per_task", TASKS + RUN, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


SRUN = "srun torchrun --nnodes=2 --rdzv_endpoint=$head:29400 train.py\n"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("export MASTER_ADDR=$(hostname -I)\nsrun python train.py\n", [5]),
        (f"head=$(hostname -I)\n{SRUN}", [5]),
        (f"head=`hostname --all-ip-addresses`\n{SRUN}", [5]),
        (f"head=$(hostname -I | head -n 1)\n{SRUN}", [5]),
        (f"head=$(srun hostname --ip-address)\n{SRUN}", [5]),
        (f"head=$(srun -w n1 -N2 -n2 hostname -i)\n{SRUN}", [5]),
        (f"head=$(getent hosts n1)\n{SRUN}", [5]),
        (f"head=$(nslookup n1)\n{SRUN}", [5]),
        (f"head=$(getent hosts n1 | head -n 1)\n{SRUN}", [5]),
        (f"head=$(hostname -I | xargs)\n{SRUN}", [5]),
        ("ip=$(hostname -I)\nexport RAY_ADDRESS=$ip:6379\nsrun python tune.py\n", [5]),
        (f"head=$(hostname -I | awk '{{print $1}}')\n{SRUN}", []),
        (f"head=$(hostname -I | cut -d' ' -f1)\n{SRUN}", []),
        (f"ips=$(hostname -I)\nhead=${{ips%% *}}\n{SRUN}", []),
        (f"ips=($(hostname -I))\nhead=${{ips[0]}}\n{SRUN}", []),
        (f"head=$(hostname)\n{SRUN}", []),
        (f"head=$(srun -N1 -n1 -w n1 hostname --ip-address)\n{SRUN}", []),
        (f"head=$(srun hostname | head -n1)\n{SRUN}", []),
        (f"head=$(getent hosts n1 | awk '{{print $1}}')\n{SRUN}", []),
        ("echo $(hostname -I)\nsrun python train.py\n", []),
    ],
)
def test_addresses_that_are_several(body: str, lines: list[int]) -> None:
    assert found("head_ip_lookup", NODES + body) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("export MASTER_ADDR=$SLURM_NODELIST\nsrun python train.py\n", [5]),
        ("export MASTER_ADDR=${SLURM_JOB_NODELIST%%,*}\nsrun python train.py\n", [5]),
        (f"head=$(echo $SLURM_NODELIST | cut -d, -f1)\n{SRUN}", [5]),
        (f"head=$(echo $SLURM_JOB_NODELIST | tr ',' '\\n' | head -n1)\n{SRUN}", [5]),
        (f"head=$(awk -F, '{{print $1}}' <<< $SLURM_JOB_NODELIST)\n{SRUN}", [5]),
        ("for n in ${SLURM_NODELIST//,/ }; do\n  ssh $n hostname\ndone\n", [5]),
        ("IFS=',' read -ra N <<< \"$SLURM_JOB_NODELIST\"\nsrun python train.py\n", [5]),
        ("mpirun -np 8 --host $SLURM_NODELIST python train.py\n", [5]),
        (f"nodes=(${{SLURM_NODELIST//,/ }})\nhead=${{nodes[0]}}\n{SRUN}", [5]),
        (f"head=$(scontrol show hostnames $SLURM_NODELIST | head -n1)\n{SRUN}", []),
        (f"nodes=($(scontrol show hostnames $SLURM_NODELIST))\nhead=${{nodes[0]}}\n{SRUN}", []),
        ("srun -w $SLURM_NODELIST python train.py\n", []),
        ("echo nodes: $SLURM_NODELIST\nsrun python train.py\n", []),
        ("for n in $(scontrol show hostnames $SLURM_NODELIST); do ssh $n ls; done\n", []),
        (f"head=$(nodeset -e $SLURM_NODELIST | cut -d' ' -f1)\n{SRUN}", []),
    ],
)
def test_node_lists_that_nobody_expands(body: str, lines: list[int]) -> None:
    assert found("nodelist_unexpanded", NODES + body) == lines
    one = NODES.replace("nodes=2", "nodes=1") + body
    assert found("nodelist_unexpanded", one) == []


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ('os.environ["MASTER_ADDR"] = os.environ["SLURM_NODELIST"].split(",")[0]', [2]),
        ('nodes = os.getenv("SLURM_JOB_NODELIST").split(",")\nprint(nodes[0])', [2]),
        ('os.environ["MASTER_ADDR"] = os.environ["SLURM_NODELIST"]', [2]),
        ('os.environ["MASTER_ADDR"] = os.environ["SLURM_NODELIST"][:4]', [2]),
        ('n = os.environ["SLURM_NODELIST"]\nif "[" not in n:\n    h = n.split(",")[0]', []),
        ('import hostlist\nh = hostlist.expand_hostlist(os.environ["SLURM_NODELIST"])[0]', []),
        ('x = os.environ["NODES"].split(",")', []),
    ],
)
def test_node_lists_in_the_program(program: str, lines: list[int], tmp_path: Path) -> None:
    given = in_python("nodelist_unexpanded", TASKS + RUN, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


@pytest.mark.parametrize(
    ("head", "body", "lines"),
    [
        (
            NODES,
            "srun bash -c 'torchrun --nnodes=2 --rdzv_endpoint=$SLURM_LAUNCH_NODE_IPADDR:1 a.py'\n",
            [5],
        ),
        (NODES, "srun bash -c 'MASTER_ADDR=$SLURM_SRUN_COMM_HOST python a.py'\n", [5]),
        (NODES, "export MASTER_ADDR=$SLURM_LAUNCH_NODE_IPADDR\nsrun python train.py\n", [5]),
        (ONE, "export MASTER_ADDR=$SLURM_LAUNCH_NODE_IPADDR\nsrun python train.py\n", [5]),
        (ONE, "srun bash -c 'MASTER_ADDR=$SLURM_LAUNCH_NODE_IPADDR python a.py'\n", []),
        (NODES, "srun bash -c 'echo $SLURM_LAUNCH_NODE_IPADDR; python a.py'\n", []),
    ],
)
def test_the_machine_of_srun_as_master(head: str, body: str, lines: list[int]) -> None:
    assert found("launch_node_ipaddr", head + body) == lines


def test_the_machine_of_srun_in_the_program(tmp_path: Path) -> None:
    program = 'import os\nos.environ["MASTER_ADDR"] = os.environ["SLURM_LAUNCH_NODE_IPADDR"]\n'
    assert in_python("launch_node_ipaddr", NODES + RUN, program, tmp_path) == ["train.py:2"]
    assert in_python("launch_node_ipaddr", ONE + RUN, program, tmp_path) == []


# --- ports -----------------------------------------------------------------------------------

PORTS = ("port_octal", "port_per_process", "port_out_of_range", "fixed_port", "port_ephemeral")


def port(text: str) -> dict[str, list[int | str]]:
    """What the rules about ports find; at most one of them speaks."""
    answers = {rule: found(rule, text) for rule in PORTS}
    return {rule: lines for rule, lines in answers.items() if lines}


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("29500", "fixed_port"),
        ("${MASTER_PORT:-29500}", "fixed_port"),
        ("33333", "fixed_port"),
        ("$((20000 + SLURM_JOB_ID % 10000))", None),
        ("$((20000 + ${SLURM_JOB_ID} % 10000))", None),
        ("$(expr 20000 + $SLURM_JOB_ID % 10000)", None),
        ("1${SLURM_JOB_ID: -4}", None),
        ("1$(echo -n $SLURM_JOB_ID | tail -c 4)", None),
        ("1$(printf %s $SLURM_JOB_ID | tail -c 4)", None),
        ("9$(echo $SLURM_JOB_ID | tail -c 4)", None),
        ("9$(echo -n $SLURM_JOB_ID | tail -c 4)", "port_out_of_range"),
        ("$(echo $SLURM_JOB_ID % 10000 + 20000 | bc)", None),
        ('$(echo "$SLURM_JOB_ID % 10000 + 30000" | bc)', "port_ephemeral"),
        ("$((10000 + 10#${SLURM_JOB_ID: -4}))", None),
        ("$((10000 + RANDOM % 20000))", None),
        ("$(shuf -i 10000-30000 -n 1)", None),
        ("$PORT_FROM_OUTSIDE", None),
        ("$((10000 + ${SLURM_JOB_ID: -4}))", "port_octal"),
        ("$((10000 + ${SLURM_JOBID:(-4)}))", "port_octal"),
        ("$((10000 + $(echo -n $SLURM_JOB_ID | tail -c 4)))", "port_octal"),
        ("$((10000 + $(echo $SLURM_JOB_ID | cut -c 5-8)))", "port_octal"),
        ("$((20000 + $(date +%M%S)))", "port_octal"),
        ("66660", "port_out_of_range"),
        ("$SLURM_JOB_ID", "port_out_of_range"),
        ("$((SLURM_JOB_ID))", "port_out_of_range"),
        ("$((SLURM_JOB_ID % 65536))", "port_out_of_range"),
        ("$((60000 + SLURM_JOB_ID % 10000))", "port_out_of_range"),
        ("$((10000 + SLURM_JOB_ID))", "port_out_of_range"),
        ("6${SLURM_JOB_ID: -4}", "port_out_of_range"),
        ("$((30000 + UID))", "port_out_of_range"),
        ("443", "port_out_of_range"),
        ("$((49152 + SLURM_JOB_ID % 16384))", "port_ephemeral"),
        ("$((33000 + RANDOM % 16000))", "port_ephemeral"),
        ("$(shuf -i 40000-50000 -n 1)", "port_ephemeral"),
        ("$((20000 + SLURM_JOB_ID % 40000))", "port_ephemeral"),
        ("5${SLURM_JOB_ID: -4}", "port_ephemeral"),
        ("$(comm -23 <(seq 49152 65535) <(ss -tan) | shuf | head -n 1)", "port_ephemeral"),
    ],
)
def test_one_fault_for_each_port(value: str, rule: str | None) -> None:
    expected = {} if rule is None else {rule: [5]}
    assert port(f"{TASKS}export MASTER_PORT={value}\nsrun python train.py\n") == expected
    launched = f"{NODES}srun torchrun --nnodes=2 --master_port={value} train.py\n"
    assert port(launched) == expected
    endpoint = f'{NODES}srun torchrun --nnodes=2 --rdzv_endpoint="$head:{value}" train.py\n'
    assert port(endpoint) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{WHOLE}export MASTER_PORT=29500\nsrun python train.py\n", {}),
        (f"{WHOLE}export MASTER_PORT=40000\nsrun python train.py\n", {"port_ephemeral": [5]}),
        (f"{TASKS}#SBATCH --mem=0\nexport MASTER_PORT=29500\nsrun python train.py\n", {}),
        (f"{TASKS.replace('gpu:4', 'gpu:8')}export MASTER_PORT=6000\nsrun python a.py\n", {}),
        (f"{ONE}torchrun --standalone --nproc_per_node=2 train.py\n", {}),
        (f"{ONE}torchrun --nproc_per_node=2 train.py\n", {"fixed_port": [5]}),
        (f"{ONE}torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 train.py\n", {}),
        (f"{ONE}torchrun --nproc_per_node=2 --master_port 29501 train.py\n", {"fixed_port": [5]}),
        (
            f"{ONE}python -m torch.distributed.launch --nproc_per_node=2 --master_port=9999 a.py\n",
            {"fixed_port": [5]},
        ),
        (f"{ONE}deepspeed --num_gpus 2 --master_port 29600 train.py\n", {"fixed_port": [5]}),
        (
            f"{ONE}accelerate launch --num_processes 2 --main_process_port 29501 a.py\n",
            {"fixed_port": [5]},
        ),
        (f"{ONE}P=29501\ntorchrun --nproc_per_node=2 --master_port=$P a.py\n", {"fixed_port": [5]}),
        (f"{ONE}srun python train.py --dist-url tcp://localhost:10001\n", {"fixed_port": [5]}),
        (f"{ONE}srun --export=ALL,MASTER_PORT=29500 python train.py\n", {"fixed_port": [5]}),
        (f"{ONE}python -m http.server --port 8000\n", {}),
        (f"{ONE}srun ray start --head --port=6379 --block\n", {"fixed_port": [5]}),
        (
            f"{ONE}((MASTER_PORT = 10000 + ${{SLURM_JOB_ID: -4}}))\nsrun python a.py\n",
            {"port_octal": [5]},
        ),
        (f"{ONE}let PORT=10000+${{SLURM_JOB_ID: -4}}\nsrun python a.py\n", {"port_octal": [5]}),
        (
            f"{ONE}declare -i PORT=10000+${{SLURM_JOB_ID: -4}}\nsrun python a.py\n",
            {"port_octal": [5]},
        ),
        (f"{ONE}((MASTER_PORT = 10000 + SLURM_JOB_ID % 10000))\nsrun python a.py\n", {}),
        (
            f"{ONE}L=${{SLURM_JOB_ID: -4}}\nexport MASTER_PORT=$((9000 + L))\nsrun python a.py\n",
            {"port_octal": [6]},
        ),
        (
            f"{TASKS}srun bash -c 'MASTER_PORT=$((12000 + RANDOM % 20000)) python a.py'\n",
            {"port_per_process": [5]},
        ),
        (
            f"{TASKS}srun bash -c 'export MASTER_PORT=$(shuf -i 10000-20000 -n 1); python a.py'\n",
            {"port_per_process": [5]},
        ),
        (
            f"{TASKS}srun bash -c 'MASTER_PORT=$((29500 + SLURM_PROCID)) python a.py'\n",
            {"port_per_process": [5]},
        ),
        (
            f"{TASKS}srun bash -c 'MASTER_PORT=$((20000 + $$ % 10000)) python a.py'\n",
            {"port_per_process": [5]},
        ),
        (f'{TASKS}srun bash -c "MASTER_PORT=$((12000 + RANDOM % 20000)) python a.py"\n', {}),
        (
            (
                f"{TASKS}srun bash -c 'RANDOM=$SLURM_JOB_ID; MASTER_PORT=$((12000 + RANDOM % 900)) "
                "python a.py'\n"
            ),
            {},
        ),
        (
            f"{NODES}srun bash -c 'torchrun --nnodes=2 --master_port=$((9000+RANDOM%9)) a.py'\n",
            {"port_per_process": [5]},
        ),
        (
            (
                f"{NODES}srun bash -c 'torchrun --nproc_per_node=4 --master_port=$((9000+RANDOM%9))"
                " a.py'\n"
            ),
            {},
        ),
    ],
)
def test_ports_by_what_surrounds_them(text: str, expected: dict[str, list[int | str]]) -> None:
    assert port(text) == expected


@pytest.mark.parametrize(
    ("rule", "program", "lines"),
    [
        ("fixed_port", 'os.environ["MASTER_PORT"] = "29500"', [2]),
        ("fixed_port", 'os.environ["MASTER_PORT"] = str(29500)', [2]),
        ("fixed_port", 'os.environ.setdefault("MASTER_PORT", "12355")', [2]),
        ("fixed_port", 'dist.init_process_group("nccl", init_method="tcp://h:23456")', [2]),
        (
            "fixed_port",
            (
                'p = os.environ.get("MASTER_PORT", "29500")\n'
                'dist.init_process_group("nccl", init_method=f"tcp://h:{p}")'
            ),
            [3],
        ),
        (
            "fixed_port",
            'os.environ["MASTER_PORT"] = str(10000 + int(os.environ["SLURM_JOB_ID"]) % 9)',
            [],
        ),
        (
            "port_per_process",
            'import random\nos.environ["MASTER_PORT"] = str(random.randint(1e4, 2e4))',
            [3],
        ),
        (
            "port_per_process",
            (
                'def free_port():\n    s = socket.socket()\n    s.bind(("", 0))\n'
                "    return s.getsockname()[1]\n"
                'os.environ["MASTER_PORT"] = str(free_port())'
            ),
            [6],
        ),
        (
            "port_per_process",
            'os.environ["MASTER_PORT"] = str(29500 + int(os.environ["SLURM_PROCID"]))',
            [2],
        ),
        (
            "port_per_process",
            (
                'import random\nrandom.seed(int(os.environ["SLURM_JOB_ID"]))\n'
                'os.environ["MASTER_PORT"] = str(random.randint(10000, 20000))'
            ),
            [],
        ),
        (
            "port_per_process",
            'os.environ["MASTER_PORT"] = str(hash(os.environ["SLURM_JOB_ID"]) % 9)',
            [2],
        ),
        ("port_out_of_range", 'os.environ["MASTER_PORT"] = "70000"', [2]),
        (
            "port_out_of_range",
            'os.environ["MASTER_PORT"] = str(10000 + int(os.environ["SLURM_JOB_ID"]))',
            [2],
        ),
        (
            "port_ephemeral",
            'os.environ["MASTER_PORT"] = str(40000 + int(os.environ["SLURM_JOB_ID"]) % 9)',
            [2],
        ),
    ],
)
def test_ports_in_the_program(rule: str, program: str, lines: list[int], tmp_path: Path) -> None:
    given = in_python(rule, TASKS + RUN, SETUP + program, tmp_path)
    assert given == [f"train.py:{line}" for line in lines]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (
            (
                "torchrun --nproc_per_node=1 --master_port=29500 a.py &\n"
                "torchrun --nproc_per_node=1 --master_port=29500 b.py &\nwait\n"
            ),
            [5],
        ),
        ("for s in 0 1; do\n  torchrun --nproc_per_node=2 a.py --seed $s &\ndone\nwait\n", [6]),
        (
            (
                "torchrun --nproc_per_node=2 --master_port=29500 a.py &\n"
                "torchrun --nproc_per_node=2 --master_port=29501 b.py &\nwait\n"
            ),
            [],
        ),
        ("for s in 0 1; do\n  torchrun --standalone a.py --seed $s &\ndone\nwait\n", []),
    ],
)
def test_one_port_for_trainings_side_by_side(body: str, lines: list[int]) -> None:
    head = ONE.replace("--nodes=1", "--nodes=1 --exclusive")
    assert found("fixed_port", head + body) == lines


@pytest.mark.parametrize(("on_node", "kinds"), [(4, []), (8, ["fixed"])])
def test_a_profile_says_how_many_gpus_are_all_of_them(on_node: int, kinds: list[str]) -> None:
    profile = Profile.model_validate(
        {"name": "c", "node_types": [{"name": "a100", "gpu": "a100", "gpus_per_node": on_node}]}
    )
    text = f"{TASKS}export MASTER_PORT=29500\nsrun python train.py\n"
    job = load("job.sbatch", text, profile=profile)
    assert [fault.kind for fault in faults(job)] == kinds
