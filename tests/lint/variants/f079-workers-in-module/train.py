from loaders import make_loader

for batch in make_loader():
    print(batch.mean())
