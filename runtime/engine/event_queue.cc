#include <algorithm>
#include <iterator>

#include "engine/request.h"

namespace ashlar {
namespace {

template <class T>
void Append(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty()) {
    to = std::move(from);
  } else {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }
}

void Merge(Event& into, Event&& next) {
  Append(into.ids, std::move(next.ids));
  Append(into.logprobs, std::move(next.logprobs));
  Append(into.prompt_logprobs, std::move(next.prompt_logprobs));
  into.finish = next.finish;
  into.stop_id = next.stop_id;
  into.cached_tokens = std::max(into.cached_tokens, next.cached_tokens);
  into.error = std::move(next.error);
}

}  // namespace

void EventQueue::Push(Event event) {
  {
    std::lock_guard lock(mutex_);
    auto [pending, fresh] = pending_.try_emplace(event.choice);
    if (fresh) {
      pending->second = std::move(event);
    } else {
      Merge(pending->second, std::move(event));
    }
  }
  ready_.notify_one();
}

void EventQueue::Push(const TokenEvent& event) {
  {
    std::lock_guard lock(mutex_);
    Event& pending = pending_[event.choice];
    pending.choice = event.choice;
    pending.ids.push_back(event.id);
    pending.cached_tokens = std::max(pending.cached_tokens, event.cached_tokens);
  }
  ready_.notify_one();
}

std::optional<Event> EventQueue::Pop(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!ready_.wait_for(lock, timeout, [this] { return !pending_.empty(); })) return std::nullopt;
  auto next = pending_.upper_bound(last_);
  if (next == pending_.end()) next = pending_.begin();
  last_ = next->first;
  return std::move(pending_.extract(next).mapped());
}

}  // namespace ashlar
