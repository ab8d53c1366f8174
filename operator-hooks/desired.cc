#include "operator-hooks/desired.h"

#include "operator-hooks/names.h"

namespace ashlar::hooks {

void WriteLabels(JsonWriter& out, const std::string& name) {
  out.Add("app.kubernetes.io/name", "ashlar");
  out.Add("app.kubernetes.io/instance", name);
  out.Add("app.kubernetes.io/managed-by", "ashlar-hooks");
  out.Add(kModelLabel, name);
}

void WriteSelector(JsonWriter& out, std::string_view key, const std::string& name) {
  out.Object(key, [&] { out.Object("matchLabels", [&] { out.Add(kModelLabel, name); }); });
}

void WriteTextMap(JsonWriter& out, const std::map<std::string, std::string>& texts) {
  for (const auto& [key, value] : texts) out.Add(key, value);
}

}  // namespace ashlar::hooks
