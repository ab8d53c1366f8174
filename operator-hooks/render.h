// `ashlar-hooks render`: the children of a model without a cluster, as the operator would make
// them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "operator-hooks/settings.h"

namespace ashlar::hooks {

// Documents separated by "---". `name` stands for the file in messages; `ns` is used where the
// manifest names no namespace. A model that would be refused is refused here, with the same words.
Result<std::string> Render(std::string_view manifest, const std::string& name,
                           const std::string& ns, const Settings& settings);

}  // namespace ashlar::hooks
