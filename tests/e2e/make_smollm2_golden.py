"""Greedy ids, margins and best log-probabilities of SmolLM2-135M-Instruct from the numpy oracle.

    python3 make_smollm2_golden.py MODEL.gguf > smollm2_golden.json
"""
import json
import sys

import numpy as np
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gguf_llama import Model

TOKENS, BEST = 32, 12
TEXTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):", "The three primary colours are", "Water boils at", "In 1969,",
         "To make bread you need", "A list of animals: cat, dog,", "The opposite of hot is", "import numpy as np\n"]
CHATS = ["What is the capital of Italy?", "Name three fruits.", "Write a haiku about stones.", "What is 2 + 2?", "Who wrote Hamlet?",
         "Explain gravity to a child.", "Translate 'good morning' into French.", "Give me a recipe for tea.", "What is a prime number?",
         "Tell me a joke about 猫 and naïve café owners 😀."]
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def tokenizer_of(path):
    """Byte-level BPE with digits one by one, as the model's own tokenizer.json states it."""
    fields = GGUFReader(path).fields
    tokens, merges, types = (fields["tokenizer.ggml." + key].contents() for key in ("tokens", "merges", "token_type"))
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, kind in zip(tokens, types) if kind == 3])
    return tokenizer


def chat_text(question):
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def main():
    path = sys.argv[1]
    model, tokenizer = Model(path), tokenizer_of(path)
    cases = []
    for question, text in [(None, t) for t in TEXTS] + [(c, chat_text(c)) for c in CHATS]:
        prompt = tokenizer.encode(text, add_special_tokens=False).ids
        model.reset()
        logits, ids, margins, best = model.append(prompt), [], [], []
        for _ in range(TOKENS):
            order = np.argsort(-logits, kind="stable")[:BEST]
            log_z = float(np.log(np.exp((logits - logits[order[0]]).astype(np.float64)).sum())) + float(logits[order[0]])
            ids.append(int(order[0]))
            margins.append(round(float(logits[order[0]] - logits[order[1]]), 5))
            best.append([[int(i), round(float(logits[i]) - log_z, 5)] for i in order])
            logits = model.append([ids[-1]])
        cases.append({"text": text, "question": question, "prompt": prompt, "ids": ids, "margins": margins, "best": best})
        print(len(cases), "of", len(TEXTS) + len(CHATS), file=sys.stderr, flush=True)
    json.dump({"tokens": TOKENS, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
