"""Trains the built-in models and writes the folders that are linked into the binary.

    python3 train.py OUT [NAME...]       needs one GPU, torch, transformers, tokenizers; about eight minutes for `demo`

Everything follows from SEED: tokenizer, corpus, initial weights, order. Weights are rounded to bf16; the evaluation runs on the
rounded weights, on questions that training never saw where the corpus can tell (sums), or met by chance only (look-ups).
"""
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import time

import corpus

SEED, CONTEXT, VOCAB = 20261129, 1024, 1024
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
COMMON = dict(vocab_size=VOCAB, max_position_embeddings=CONTEXT, rms_norm_eps=1e-6, bos_token_id=None, eos_token_id=2, pad_token_id=0,
              tie_word_embeddings=True, attention_bias=False)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
MODELS = {
    # five sliding layers to one full: two KV groups
    "demo": dict(kind="gemma3_text", hidden_size=128, intermediate_size=384, num_hidden_layers=6, num_attention_heads=4, num_key_value_heads=2,
                 head_dim=32, query_pre_attn_scalar=32, sliding_window=32, hidden_activation="gelu_pytorch_tanh",
                 layer_types=["sliding_attention"] * 3 + ["full_attention"] + ["sliding_attention"] * 2,
                 rope_parameters={"full_attention": ROPE, "sliding_attention": ROPE}),
    # full attention only: one KV group
    "demo-dense": dict(kind="qwen3", hidden_size=96, intermediate_size=240, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2,
                       head_dim=32, rope_parameters=ROPE),
}
WARMUP, RATE = 200, 4e-3
BATCH = {"demo": 96, "demo-dense": 48}
STEPS = {"demo": 9000, "demo-dense": 11000}
SHARDS, SHARD_DOCUMENTS = 192, 9000


def shard(index):
    rng = random.Random(SEED * 1000 + index)
    return [corpus.document(rng) for _ in range(SHARD_DOCUMENTS)]


def make_tokenizer(documents):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(("".join(text for text, _ in d) for d in documents), trainer)
    return tokenizer


def encode_shard(arguments):
    import numpy as np
    from tokenizers import Tokenizer
    path, index = arguments
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer.from_file(path)
    ids, learned = [], []
    for document in shard(index):
        for text, learn in document:
            piece = tokenizer.encode(text).ids
            ids += piece
            learned += [learn] * len(piece)
        ids.append(0)
        learned.append(True)
    return np.array(ids, dtype=np.int16), np.array(learned, dtype=bool)


def build(settings):
    from transformers import AutoConfig, AutoModelForCausalLM
    settings = dict(settings)
    config = AutoConfig.for_model(settings.pop("kind"), **COMMON, **settings)
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")


def train(name, ids, learned):
    import torch
    torch.manual_seed(SEED)
    torch.set_float32_matmul_precision("high")
    model = build(MODELS[name]).cuda().train()
    print(name, sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    optimizers = [torch.optim.Muon(matrices, lr=RATE, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
                  torch.optim.AdamW(rest, lr=RATE, betas=(0.9, 0.98), weight_decay=0, fused=True)]
    steps = STEPS[name]
    rate = lambda s: min((s + 1) / WARMUP, 1) * (1 - max(0, s - WARMUP) / (steps - WARMUP)) + 1e-4
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, rate) for o in optimizers]
    ids_gpu, learned_gpu = torch.from_numpy(ids).cuda(), torch.from_numpy(learned).cuda()
    starts = torch.Generator(device="cuda").manual_seed(SEED)
    span = torch.arange(CONTEXT + 1, device="cuda")

    def loss_of(window, mask):
        logits = model(input_ids=window[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), window[:, 1:].flatten(), reduction="none")
        mask = mask[:, 1:].flatten().float() * 0.97 + 0.03  # a little of the questions too, so that every token is known
        return (loss * mask).sum() / mask.sum()

    compiled = torch.compile(loss_of)
    begin = time.time()
    for step in range(steps):
        at = torch.randint(len(ids) - CONTEXT - 1, (BATCH[name], 1), device="cuda", generator=starts) + span
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids_gpu[at].long(), learned_gpu[at])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
        if step % 1000 == 0 or step == steps - 1:
            print(f"{name} step {step} loss {loss.item():.4f} {time.time() - begin:.0f} s", flush=True)
    return model.eval().bfloat16()


def questions(count):
    """(task, prompt, right answer) triples; the sums are the held-out ones."""
    rng = random.Random(SEED + 1)
    ask = lambda pieces: "".join(text for text, _ in pieces)
    for _ in range(count):
        while True:
            x, y = rng.randrange(100), rng.randrange(100)
            if corpus.held_out(x, y):
                break
        yield "sum", ask(corpus.turn("user", corpus.sum_question(rng, x, y))), str(x + y)
        text, table = corpus.facts(rng, rng.randint(2, 8))
        (question, answer), = corpus.lookup_questions(rng, table, 1)
        yield "look-up, " + " ".join(question.split()[:2]).lower(), ask(corpus.turn("user", text + " " + question)), answer
        for task, make in (("json", corpus.json_answer), ("tool call", corpus.tool_call)):
            pieces = make(rng)
            first = next(i for i, (_, learn) in enumerate(pieces) if learn)
            yield task, ask(pieces[: first - 1]), pieces[first][0].removesuffix("<|im_end|>")


def evaluate(model, tokenizer, count=300):
    import torch
    model = model.float()
    right, total, wrong = {}, {}, {}
    groups = {}
    for task, prompt, answer in questions(count):
        ids = tokenizer.encode(prompt + "<|im_start|>assistant\n").ids
        groups.setdefault(len(ids), []).append((task, ids, answer))
    for length, items in sorted(groups.items()):
        batch = torch.tensor([ids for _, ids, _ in items], device=model.device)
        with torch.no_grad():
            out = model.generate(batch, attention_mask=torch.ones_like(batch), max_new_tokens=64, do_sample=False, eos_token_id=2, pad_token_id=0)
        for (task, _, answer), row in zip(items, out[:, length:].tolist()):
            text = tokenizer.decode(row[: row.index(2)] if 2 in row else row, skip_special_tokens=False)
            total[task] = total.get(task, 0) + 1
            right[task] = right.get(task, 0) + (text == answer)
            if text != answer:
                wrong.setdefault(task, []).append([answer, text])
    print({k: v[:3] for k, v in wrong.items()}, flush=True)
    return {task: {"right": right[task], "of": total[task]} for task in total}


def write(out, name, model, tokenizer, evaluation):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    from safetensors.torch import save_file
    tensors = {k: v.bfloat16().cpu().contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    config = model.config.to_dict()
    config["dtype"] = "bfloat16"
    for key in ("_name_or_path", "transformers_version", "torch_dtype"):
        config.pop(key, None)
    dump = lambda file, value: open(os.path.join(folder, file), "w").write(json.dumps(value, indent=1, sort_keys=True) + "\n")
    dump("config.json", config)
    dump("generation_config.json", {"eos_token_id": [2, 0]})
    dump("tokenizer_config.json", {"bos_token": None, "eos_token": "<|im_end|>", "tokenizer_class": "PreTrainedTokenizerFast"})
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja"), folder)
    checksum = hashlib.sha256(open(os.path.join(folder, "model.safetensors"), "rb").read()).hexdigest()
    dump("evaluation.json", {"seed": SEED, "steps": STEPS[name], "sha256": checksum, "exact_answers": evaluation})
    print(name, json.dumps(evaluation), checksum, flush=True)


def main():
    import numpy as np
    out, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    os.makedirs(out, exist_ok=True)
    begin = time.time()
    tokenizer = make_tokenizer(shard(0) + shard(1))
    path = os.path.join("/tmp", "tokenizer.json")
    tokenizer.save(path)
    with multiprocessing.get_context("spawn").Pool(16) as pool:
        parts = pool.map(encode_shard, [(path, i) for i in range(SHARDS)], chunksize=1)
    ids, learned = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    print(f"{len(ids)} tokens, {time.time() - begin:.0f} s", flush=True)
    for name in names:
        model = train(name, ids, learned)
        write(out, name, model, tokenizer, evaluate(model, tokenizer))


if __name__ == "__main__":
    main()
