from slurmgen.ddp.measure.usage_summary import RankUsage, summarise


def rank(number: int, *, waits: float, busy: float) -> RankUsage:
    return RankUsage(
        rank=number,
        node=f"n{number + 1}",
        local_rank=0,
        device="cuda:0",
        gpu="NVIDIA H100",
        gpu_uuid=f"GPU-{number}",
        started_at="2026-01-20T12:00:00Z",
        ended_at="2026-01-20T13:00:00Z",
        elapsed_s=3600.0,
        steps=9000,
        step_s_median=0.4,
        data_wait_share=waits,
        peer_wait_s_median=0.01,
        gpu_busy_share=busy,
        gpu_memory_max_mib=61_000,
        gpu_memory_total_mib=81_559,
        gpu_samples=720,
        cpus=8,
        cpu_share=0.5,
    )


print("\n".join(summarise([rank(0, waits=0.02, busy=0.93), rank(1, waits=0.6, busy=0.35)], 2)))
