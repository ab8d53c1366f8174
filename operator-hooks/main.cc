// The command line: serve, render, schema, version.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "base/log.h"
#include "base/mapped_file.h"
#include "operator-hooks/hook_server.h"
#include "operator-hooks/model_schema.h"
#include "operator-hooks/poller.h"
#include "operator-hooks/render.h"
#include "operator-hooks/socket_address.h"

namespace ashlar::hooks {
namespace {

constexpr int kRefused = 2;  // exit status of a command whose input has problems
constexpr size_t kManifestBytes = 1 << 20;
// Where `spec.model` stands in manifests/crd.yaml.
constexpr int kSchemaIndent = 16;

int Report(const Problems& problems) {
  std::cerr << Text(problems) << std::endl;
  return kRefused;
}

struct Options {
  Settings settings;
  std::vector<std::string> platforms;
  std::string host = "0.0.0.0", resolver, tls_certificate, tls_key, file, ns = "default";
  int port = 8080, tls_port = 8443;
};

void AddSettings(CLI::App* command, Options& options) {
  Settings& settings = options.settings;
  command->add_option("--image-cpu", settings.image_cpu, "runtime image for CPU nodes");
  command->add_option("--image-nvidia", settings.image_nvidia, "runtime image for NVIDIA devices");
  command->add_option("--image-amd", settings.image_amd, "runtime image for AMD devices");
  command->add_option("--download-image", settings.download_image,
                      "called as IMAGE <uri> /models for hf:// and s3:// sources");
  command->add_option("--monitoring-namespace", settings.monitoring_namespace,
                      "namespace whose pods may scrape the models");
  command->add_option("--own-namespace", settings.own_namespace, "namespace of these hooks");
  command->add_option("--prometheus-url", settings.prometheus_url, "for KEDA's triggers");
  command->add_option("--cluster-domain", settings.cluster_domain, "DNS suffix of services");
  command->add_option("--device-group", settings.device_groups,
                      "supplemental group of pods with AMD devices; may be repeated");
  command->add_option(
      "--platform", options.platforms,
      "a captured platform or profile to plan for beside the nodes; may be repeated");
}

Status ReadPlatforms(Options& options) {
  for (const std::string& name : options.platforms) {
    Result<Platform> platform = ReadPlatform(name);
    if (!platform) return platform.problems();
    options.settings.platforms.push_back(*std::move(platform));
  }
  return Done{};
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int Serve(const Options& options) {
  // Blocked before any thread starts, so that only the wait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  SnapshotStore snapshots;
  HookMetrics metrics;
  HookService service(options.settings, snapshots, metrics, Now);
  Poller poller(snapshots, metrics, Now, options.settings.cluster_domain, options.resolver);
  HttpServer::Options server;
  server.host = options.host;
  server.port = options.port;
  server.limits = HookLimits();
  server.error_body = HookError;
  auto hooks = HttpServer::Start(server, HookRoutes(service, metrics));
  if (!hooks) return Report(hooks.problems());
  LogInfo("hooks", "listening on {}", AddressAndPort(options.host, (*hooks)->port()));
  std::unique_ptr<HttpServer> admission;
  if (!options.tls_certificate.empty()) {
    server.port = options.tls_port;
    server.certificate_file = options.tls_certificate;
    server.key_file = options.tls_key;
    auto started = HttpServer::Start(server, AdmissionRoutes(service, metrics));
    if (!started) return Report(started.problems());
    admission = *std::move(started);
    LogInfo("hooks", "admission on {}, with TLS", AddressAndPort(options.host, admission->port()));
  }
  int signal = 0;
  sigwait(&signals, &signal);
  return 0;
}

int RenderFile(const Options& options) {
  Result<std::string> text = ReadTextFile(options.file, kManifestBytes);
  if (!text) return Report(text.problems());
  Result<std::string> children = Render(*text, options.file, options.ns, options.settings);
  if (!children) return Report(children.problems());
  std::cout << *children << std::flush;
  return 0;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Turns InferenceModels into what Kubernetes runs, and tells how they fare.");
  app.require_subcommand(1);
  Options options;
  CLI::App* serve =
      app.add_subcommand("serve", "answer Metacontroller's hooks, and the admission webhook");
  serve->add_option("--host", options.host, "address to listen on");
  serve->add_option("--port", options.port, "port to listen on")->check(CLI::Range(1, 65535));
  serve->add_option(
      "--resolver", options.resolver,
      "address:port or [address]:port of the DNS server for pods (default: the machine's)");
  CLI::Option* certificate =
      serve->add_option("--tls-certificate", options.tls_certificate,
                        "PEM file: answer the API server's admission webhook, with TLS");
  CLI::Option* key = serve->add_option("--tls-key", options.tls_key, "its key, a PEM file");
  certificate->needs(key);
  key->needs(certificate);
  serve->add_option("--tls-port", options.tls_port, "port of the admission webhook")
      ->check(CLI::Range(1, 65535));
  AddSettings(serve, options);
  CLI::App* render = app.add_subcommand("render", "print the children of a manifest");
  render->add_option("-f,--file", options.file, "InferenceModel manifest (YAML)")->required();
  render->add_option("-n,--namespace", options.ns, "where the manifest names none");
  AddSettings(render, options);
  CLI::App* schema = app.add_subcommand("schema", "print the schema of spec.model");
  schema->group("");  // for those who change the CRD; help does not show it
  app.add_subcommand("version", "print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = app.exit(error);
    return status == 0 ? 0 : 64;  // EX_USAGE
  }
  if (*schema) {
    std::cout << ModelSchemaYaml(kSchemaIndent) << std::flush;
    return 0;
  }
  if (*serve || *render) {
    Status platforms = ReadPlatforms(options);
    if (!platforms) return Report(platforms.problems());
    return *serve ? Serve(options) : RenderFile(options);
  }
  std::cout << "ashlar-hooks " << ASHLAR_VERSION << std::endl;
  return 0;
}

}  // namespace ashlar::hooks

int main(int argc, char** argv) { return ashlar::hooks::Main(argc, argv); }
