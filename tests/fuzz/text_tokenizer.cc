// A tokenizer.json from anybody: refused with one problem, or it encodes into its own vocabulary.
#include "fuzz/text_refusal.h"
#include "text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  auto made = Tokenizer::FromJson({reinterpret_cast<const char*>(data), size});
  if (!made.ok()) {
    CheckRefusal(made.problems());
    return 0;
  }
  const Tokenizer& tokenizer = **made;
  const int32_t vocabulary = tokenizer.vocabulary_size();
  Check(vocabulary > 0, "a vocabulary holds tokens");
  for (const char* text : {"", "abc ab\n", " \U0001F98A <s>", "12 345"}) {
    auto ids = tokenizer.Encode(text, true);
    if (!ids.ok()) continue;
    for (int32_t id : *ids) Check(id >= 0 && id < vocabulary, "an id of the vocabulary");
    Check(tokenizer.Decode(*ids, false).ok(), "its own ids decode");
  }
  return 0;
}
