import os, torch, torch.distributed as dist
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[local])
for step in range(100):
    net(torch.randn(4, 8, device="cuda")).sum().backward()
torch.save(net.module.state_dict(), "last.pt")
dist.destroy_process_group()
