#include <algorithm>
#include <chrono>

#include "text/convert.h"
#include "text/sanitizer.h"
#include "text/text.h"

namespace ashlar {
namespace {

constexpr uint32_t kMaxMilliseconds = 200;  // of processor time; a render takes about one

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(std::string_view source,
                                                            std::string_view bos,
                                                            std::string_view eos) {
  const UninstrumentedCall call;
  tmpl_handle* handle = nullptr;
  err_fault* error = nullptr;
  if (tmpl_compile(Borrow(source), Borrow(bos), Borrow(eos), &handle, &error) != ASHLAR_OK) {
    return TakeProblem(error);
  }
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(handle));
}

ChatTemplate::~ChatTemplate() {
  const UninstrumentedCall call;
  tmpl_free(handle_);
}

Result<std::string> ChatTemplate::Render(std::string_view document,
                                         int64_t max_output_bytes) const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const auto limit = static_cast<size_t>(std::max<int64_t>(max_output_bytes, 0));
  const UninstrumentedCall call;
  ashlar_buffer text{};
  err_fault* error = nullptr;
  if (tmpl_render(handle_, Borrow(document), limit, kMaxMilliseconds, seconds, &text, &error) !=
      ASHLAR_OK) {
    return TakeProblem(error);
  }
  return TakeString(text);
}

}  // namespace ashlar
