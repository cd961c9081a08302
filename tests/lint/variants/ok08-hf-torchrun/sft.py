from transformers import HfArgumentParser, Trainer, TrainingArguments
from model import net, ds

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
trainer = Trainer(model=net(), args=args, train_dataset=ds())
trainer.train()
trainer.save_model()
