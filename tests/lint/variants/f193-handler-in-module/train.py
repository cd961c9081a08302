from preempt import install

install()
