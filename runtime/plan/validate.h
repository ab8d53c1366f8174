// One row against one request: every reason why it cannot, none why it should.
#pragma once

#include "plan/refusal.h"
#include "plan/request.h"

namespace ashlar {

// Every reason of the row's data and of the device, never stopping at the first. A row of another
// device has that single reason: what it could do there says nothing here. Allocates nothing.
Refusals Validate(const AttentionRow& row, const AttentionRequest& request, const Target& target);

// One of those reasons in words.
Explanation Explain(RefusalReason reason, const AttentionRow& row, const AttentionRequest& request,
                    const Target& target);

// Whether the row's device code runs on such a device: an exact architecture, or an older minor of
// the same CUDA major. A row without a list needs no device code.
bool BuiltFor(const AttentionRow& row, const Capability& capability);

}  // namespace ashlar
