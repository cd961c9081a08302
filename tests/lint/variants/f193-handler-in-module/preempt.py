import signal

STOP = False


def _handler(signum, frame):
    global STOP
    STOP = True


def install():
    signal.signal(signal.SIGTERM, _handler)
