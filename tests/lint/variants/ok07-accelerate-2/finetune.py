from accelerate import Accelerator
from data import loader
from model import net, optimiser

accelerator = Accelerator()
model = net()
model, opt, batches = accelerator.prepare(model, optimiser(model), loader())
for batch in batches:
    accelerator.backward(model(**batch).loss)
    opt.step()
    opt.zero_grad()
accelerator.wait_for_everyone()
if accelerator.is_main_process:
    accelerator.unwrap_model(model).save_pretrained("out")
