#include "operator-hooks/json_writer.h"

namespace ashlar::hooks {

void JsonWriter::Quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  text_ += '"';
  size_t plain = 0;  // start of the bytes that need no escape
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20) continue;
    text_ += text.substr(plain, i - plain);
    plain = i + 1;
    text_ += '\\';
    switch (c) {
      case '"':
      case '\\':
        text_ += c;
        break;
      case '\n':
        text_ += 'n';
        break;
      case '\t':
        text_ += 't';
        break;
      case '\r':
        text_ += 'r';
        break;
      default:
        text_ += "u00";
        text_ += kHex[c >> 4];
        text_ += kHex[c & 15];
    }
  }
  text_ += text.substr(plain);
  text_ += '"';
}

}  // namespace ashlar::hooks
