"""PyTorch's way of sampling, timed as graphs beside tests/gpu/bench_sample.cc: the same sizes."""
import torch

VOCAB = 151936


def greedy(x):
    return x.argmax(-1)


def plain(x):
    return torch.multinomial(torch.softmax(x, -1), 1)


def top_k(x):
    best, ids = torch.topk(x, 50)
    return ids.gather(1, torch.multinomial(torch.softmax(best, -1), 1))


def top_p(x):
    best, ids = torch.sort(x, descending=True)
    share = torch.softmax(best, -1)
    share = share.masked_fill(share.cumsum(-1) - share >= 0.9, 0)
    return ids.gather(1, torch.multinomial(share, 1))


def min_p(x):
    share = torch.softmax(x, -1)
    return torch.multinomial(share.masked_fill(share < 0.1 * share.amax(-1, True), 0), 1)


for n in (1, 8, 64, 256):
    copies = min(max((1 << 30) // (n * VOCAB * 4), 4), 64)
    x = torch.randn(copies, n, VOCAB, device="cuda")
    for way in (greedy, plain, top_k, top_p, min_p):
        for i in range(2):
            way(x[i])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(copies):
                way(x[i])
        times = []
        for _ in range(7):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e3 / copies)
        print(f"torch B {n} {way.__name__}: {sorted(times)[3]:.1f} us")
