// A call into the Rust library, as ThreadSanitizer should see it.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define ASHLAR_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ASHLAR_THREAD_SANITIZER 1
#endif
#endif

#ifdef ASHLAR_THREAD_SANITIZER
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace ashlar {

// Rust code is not instrumented: the sanitizer would see its calls of malloc and memcpy, but not
// the atomics and locks that order them. While one of these lives, it looks at neither.
class UninstrumentedCall {
 public:
#ifdef ASHLAR_THREAD_SANITIZER
  UninstrumentedCall() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~UninstrumentedCall() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  UninstrumentedCall() {}
#endif
  UninstrumentedCall(const UninstrumentedCall&) = delete;
  UninstrumentedCall& operator=(const UninstrumentedCall&) = delete;
};

}  // namespace ashlar
