from slurmgen.ddp.watch.failures import Failure, words

said = """Traceback (most recent call last):
  File "train.py", line 31, in <module>
ValueError: label 7
"""
text = "ended with exit code 1: ValueError: label 7"
first = Failure(5, "n2", "n2", 1, "exception", 1, text, traceback=said)
others = [Failure(rank, "n1", "n1", rank, "exit", 1, "", secondary=True) for rank in range(4)]
print(words(first, [first, *others], own_rank=0, where="logs/slurmgen-4711.failure.json"))
