#include "probe/nvidia_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "probe/cuda_driver.h"
#include "probe/device_json.h"
#include "probe/host_device.h"
#include "probe/nvml.h"

namespace ashlar {
namespace {

constexpr const char* kPlatform = "cuda";
constexpr int64_t kAnyBytes = int64_t{1} << 60;
constexpr const char* kKernelLog = "look for NVRM and Xid lines in the node's kernel log";

// Errors of cuInit that something other than the GPU explains.
struct InitError {
  int code;
  ProbeOutcome outcome;
  const char* next;
};
constexpr std::array<InitError, 8> kInitErrors = {{
    {34, ProbeOutcome::kBroken, "this libcuda is the toolkit's stub: take it off the library path"},
    {46, ProbeOutcome::kNoAccess, "another process holds the GPU in exclusive mode: end it"},
    {101, ProbeOutcome::kNoAccess, "name devices that exist in CUDA_VISIBLE_DEVICES"},
    {304, ProbeOutcome::kNoAccess, "ask for nvidia.com/gpu in the pod, or run with --gpus"},
    {800, ProbeOutcome::kNoAccess, "allow the container to use the device"},
    {802, ProbeOutcome::kBroken, "start nvidia-fabricmanager on the node"},
    {803, ProbeOutcome::kBroken, "the image's libcuda is not of the node's driver: use the node's"},
    {804, ProbeOutcome::kBroken, "take the image's cuda-compat away or update the node's driver"},
}};

// Reads one device. What keeps it from being used stands in `refused`.
class DeviceReader {
 public:
  DeviceReader(const CudaDriver& cuda, const Nvml& nvml, const RootFiles& files, std::string driver)
      : cuda_(cuda), nvml_(nvml), files_(files), driver_(std::move(driver)) {}

  struct Answer {
    DeviceInfo device;
    std::string refused;
  };
  Answer Read(int index) const {
    int handle = 0;
    Answer answer;
    answer.device.platform = kPlatform;
    answer.device.index = index;
    answer.device.driver = driver_;
    answer.device.memory_space = fmt::format("cuda:{}", index);
    if (int code = cuda_.get(&handle, index); code != CudaDriver::kSuccess) {
      answer.refused = fmt::format("device {}: cuDeviceGet: {}", index, cuda_.ErrorText(code));
      return answer;
    }
    ReadName(handle, answer.device);
    std::string refused = ReadCapability(handle, answer.device);
    if (refused.empty()) refused = ReadMemory(handle, answer.device);
    std::optional<Nvml::Device> details = ReadDetails(handle, answer.device);
    if (refused.empty() && details) refused = details->fault;
    if (!refused.empty())
      answer.refused = fmt::format("device {} ({}{}{}): {}", index, answer.device.product,
                                   answer.device.id.empty() ? "" : ", ", answer.device.id, refused);
    return answer;
  }

 private:
  std::optional<int> Attribute(int handle, int which) const {
    int value = 0;
    if (cuda_.attribute(&value, which, handle) != CudaDriver::kSuccess) return std::nullopt;
    return value;
  }

  // "NVIDIA H100 80GB HBM3 MIG 1g.10gb" is product and partition.
  void ReadName(int handle, DeviceInfo& device) const {
    char text[256] = {};
    device.product = "NVIDIA GPU";
    if (cuda_.name(text, sizeof text, handle) == CudaDriver::kSuccess && text[0] != '\0')
      device.product = PlainText({text, strnlen(text, sizeof text)});
    if (size_t mig = device.product.find(" MIG "); mig != std::string::npos) {
      device.partition = device.product.substr(mig + 1);
      device.product.resize(mig);
    }
  }

  std::string ReadCapability(int handle, DeviceInfo& device) const {
    const std::optional<int> major = Attribute(handle, CudaDriver::kMajor),
                             minor = Attribute(handle, CudaDriver::kMinor);
    if (!major || !minor || *major < 1 || *major > 99 || *minor < 0 || *minor > 9)
      return major && minor ? fmt::format("compute capability {}.{}", *major, *minor)
                            : "its compute capability is not stated";
    device.capability = {CapabilityUnit::kCuda,
                         static_cast<uint32_t>(*major * 10 + *minor),
                         {fmt::format("{}.{}", *major, *minor)}};
    device.compute_units =
        std::clamp(Attribute(handle, CudaDriver::kMultiprocessors).value_or(0), 0, 65'536);
    return "";
  }

  std::string ReadMemory(int handle, DeviceInfo& device) const {
    size_t bytes = 0;
    if (cuda_.memory(&bytes, handle) != CudaDriver::kSuccess)
      return "the size of its memory is not stated";
    if (bytes == 0 || bytes > static_cast<size_t>(kAnyBytes))
      return fmt::format("{} bytes of memory", bytes);
    device.memory_bytes = device.free_bytes = static_cast<int64_t>(bytes);
    // A GPU that shares the host's memory has free what the host has.
    if (Attribute(handle, CudaDriver::kIntegrated).value_or(0) == 1)
      device.free_bytes = std::min(device.free_bytes, ReadHostDevice(files_, "cpu").free_bytes);
    return "";
  }

  std::optional<Nvml::Device> ReadDetails(int handle, DeviceInfo& device) const {
    CudaDriver::Uuid uuid = {};
    if (cuda_.uuid == nullptr || cuda_.uuid(&uuid, handle) != CudaDriver::kSuccess)
      return std::nullopt;
    std::string id;
    for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
      id += fmt::format("{:02x}", uuid.bytes[i]);
    }
    device.id = (device.partition.empty() ? "GPU-" : "MIG-") + id;
    std::optional<Nvml::Device> details = nvml_.Find(id);
    if (!details) return std::nullopt;
    device.id = details->uuid;
    if (details->free_bytes) device.free_bytes = std::min(device.free_bytes, *details->free_bytes);
    return details;
  }

  const CudaDriver& cuda_;
  const Nvml& nvml_;
  const RootFiles& files_;
  std::string driver_;
};

// "580.65.06 (CUDA 13.0)".
std::string DriverText(const CudaDriver& cuda, const Nvml& nvml) {
  int version = 0;
  std::string text = nvml.DriverVersion();
  if (text.empty()) text = "of unknown version";
  if (cuda.version(&version) != CudaDriver::kSuccess || version < 1000) return text;
  return fmt::format("{} (CUDA {}.{})", text, version / 1000, version % 1000 / 10);
}

// Everything is well but no device is for this process.
Accelerators NothingVisible(const Nvml& nvml) {
  const Nvml::Inventory inventory = nvml.Count();
  if (inventory.gpus == 0)
    return WithoutDevices(kPlatform, ProbeOutcome::kBroken, "the driver shows no device",
                          kKernelLog);
  if (inventory.with_mig == inventory.gpus && inventory.instances == 0)
    return WithoutDevices(
        kPlatform, ProbeOutcome::kBroken,
        fmt::format("{} GPUs are in MIG mode and have no instance", inventory.gpus),
        "make instances with nvidia-smi mig -cgi PROFILE -C, or leave MIG mode: nvidia-smi -mig 0");
  return WithoutDevices(
      kPlatform, ProbeOutcome::kNoAccess,
      fmt::format("{} GPUs, none of them visible to this process", inventory.gpus),
      "name one in CUDA_VISIBLE_DEVICES, or unset it");
}

Accelerators InitFailed(const CudaDriver& cuda, const Nvml& nvml, int code) {
  if (code == CudaDriver::kNoDevice) return NothingVisible(nvml);
  Accelerators failed = WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                                       fmt::format("cuInit: {}", cuda.ErrorText(code)), kKernelLog);
  for (const InitError& error : kInitErrors) {
    if (error.code != code) continue;
    failed.probe.outcome = error.outcome;
    failed.probe.next = error.next;
  }
  return failed;
}

// How many devices of a machine with MIG this process sees, where it sees but a part.
std::string MigText(const Nvml& nvml, const std::vector<DeviceInfo>& devices) {
  const bool part = std::any_of(devices.begin(), devices.end(),
                                [](const DeviceInfo& device) { return !device.partition.empty(); });
  if (!part) return "";
  return fmt::format("; {} of {} MIG instances are visible to this process", devices.size(),
                     std::max(nvml.Count().instances, static_cast<int>(devices.size())));
}

}  // namespace

Accelerators AskNvidiaDriver(const RootFiles& files, const VendorLibraries& libraries) {
  const VendorLibrary library(libraries.cuda);
  if (library.missing())
    return WithoutDevices(
        kPlatform, ProbeOutcome::kNoAccess, library.error(),
        "let the NVIDIA container toolkit bring it: NVIDIA_DRIVER_CAPABILITIES must hold "
        "compute and utility");
  if (!library.loaded())
    return WithoutDevices(kPlatform, ProbeOutcome::kBroken, library.error(),
                          "use the node's own libcuda.so.1");
  const CudaDriver cuda(library);
  if (const char* symbol = cuda.Missing(); symbol != nullptr)
    return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                          fmt::format("{} has no {}", libraries.cuda, symbol),
                          "update the NVIDIA driver on the node");
  const int code = cuda.init(0);
  const Nvml nvml(libraries.nvml);
  if (code != CudaDriver::kSuccess) return InitFailed(cuda, nvml, code);
  int count = 0;
  if (int failed = cuda.count(&count); failed != CudaDriver::kSuccess)
    return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                          fmt::format("cuDeviceGetCount: {}", cuda.ErrorText(failed)), kKernelLog);
  if (count == 0) return NothingVisible(nvml);
  if (count < 0 || count > kMaxDevices)
    return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                          fmt::format("the driver counts {} devices", count), kKernelLog);

  const std::string driver = DriverText(cuda, nvml);
  const DeviceReader reader(cuda, nvml, files, driver);
  Accelerators found = WithoutDevices(kPlatform, ProbeOutcome::kFound, "", "");
  std::vector<std::string> refused;
  for (int i = 0; i < count; ++i) {
    DeviceReader::Answer answer = reader.Read(i);
    if (answer.refused.empty())
      found.devices.push_back(std::move(answer.device));
    else
      refused.push_back(std::move(answer.refused));
  }
  found.probe.detail = fmt::format("driver {}, {} devices{}", driver, found.devices.size(),
                                   MigText(nvml, found.devices));
  if (!refused.empty()) found.probe.detail += "; not used: " + FirstOf(refused);
  if (found.devices.empty()) {
    found.probe.outcome = ProbeOutcome::kBroken;
    found.probe.next = fmt::format("{}; drain the node and reset or replace the GPU", kKernelLog);
  }
  return found;
}

}  // namespace ashlar
