import preempt

preempt.install()
