// Reading the C row table; internal to this module.
#pragma once

#include <string>

#include "ashlar_plugin.h"
#include "base/result.h"
#include "device/row.h"

namespace ashlar {

// Refuses a row that names no row or platform, or whose bits and values this build does not know.
// `place` names the table in messages.
Result<AttentionRow> ReadRow(const ashlar_row& row, const std::string& place);

}  // namespace ashlar
