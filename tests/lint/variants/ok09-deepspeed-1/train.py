import argparse
import deepspeed
from data import train_set
from model import Net

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()
net = Net()
engine, _, loader, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters(), training_data=train_set)
for x, y in loader:
    loss = engine(x.to(engine.device), y.to(engine.device))
    engine.backward(loss)
    engine.step()
engine.save_checkpoint("ckpt")
