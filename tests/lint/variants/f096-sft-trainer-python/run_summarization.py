from transformers import HfArgumentParser, Seq2SeqTrainer, Seq2SeqTrainingArguments
from model import ds, net, tok

args, = HfArgumentParser(Seq2SeqTrainingArguments).parse_args_into_dataclasses()
trainer = Seq2SeqTrainer(model=net(), args=args, train_dataset=ds(), tokenizer=tok())
trainer.train()
