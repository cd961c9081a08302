import os
from multiprocessing import Pool
from work import files, convert

if __name__ == "__main__":
    with Pool(len(os.sched_getaffinity(0))) as pool:
        pool.map(convert, files())
