// A chat template and its variables from anybody, with a zero byte between: text, or one refusal.
#include "fuzz/text_refusal.h"
#include "text/text.h"

namespace {

constexpr int64_t kMaxOutputBytes = 1 << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view document = cut == std::string_view::npos
                                        ? R"({"messages":[{"role":"user","content":"hi"}]})"
                                        : input.substr(cut + 1);
  auto chat = ashlar::ChatTemplate::Compile(input.substr(0, cut), "<s>", "</s>");
  if (!chat.ok()) {
    ashlar::CheckRefusal(chat.problems());
    return 0;
  }
  // A panic is a refusal too, by the place "text library".
  auto text = (*chat)->Render(document, kMaxOutputBytes);
  if (!text.ok()) {
    ashlar::CheckRefusal(text.problems());
    ashlar::Check(text.problems()[0].place != "text library", ashlar::Text(text.problems()));
    return 0;
  }
  ashlar::Check(static_cast<int64_t>(text->size()) <= kMaxOutputBytes, "output within its limit");
  return 0;
}
