import signal

stop = False


def _stop(signum, frame):
    global stop
    stop = True


def install():
    for s in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(s, _stop)
