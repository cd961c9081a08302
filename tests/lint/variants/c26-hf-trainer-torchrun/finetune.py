from transformers import Trainer, TrainingArguments
from model import ds, net

trainer = Trainer(model=net(), args=TrainingArguments("out", per_device_train_batch_size=8), train_dataset=ds())
trainer.train()
trainer.save_model("out/final")
