fuzz_target(plan_document SOURCES plan_document.cc MODULES base spec plan)
