//! Chat templates as Hugging Face renders them.

mod api;
mod clock;
mod filters;
mod functions;
mod generation;
mod limits;
mod methods;
mod number;
mod tojson;

pub use limits::Limits;

use crate::boundary::{Fault, Outcome, Status};
use functions::Raised;
use limits::{Deadline, LimitedWriter};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

const NAME: &str = "chat template";
const MAX_SOURCE_BYTES: usize = 1 << 20;

pub struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl Template {
    pub fn compile(source: &str, bos: &str, eos: &str) -> Outcome<Template> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(Fault::input(NAME, format!("{} bytes", source.len()))
                .allowed(format!("at most {MAX_SOURCE_BYTES} bytes")));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|e| fault_of(&e))?;
        environment.set_syntax(syntax);
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_unknown_method_callback(methods::call);
        environment.set_formatter(limits::format);
        environment.set_debug(false);
        limits::apply(&mut environment);
        filters::add(&mut environment);
        functions::add(&mut environment);
        environment
            .add_template_owned(NAME, generation::strip_tags(source))
            .map_err(|e| fault_of(&e))?;
        Ok(Template { environment, bos: bos.to_string(), eos: eos.to_string() })
    }

    /// `document` is one JSON object of variables.
    pub fn render(&self, document: &str, limits: &Limits) -> Outcome<String> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("render".to_string())
                .stack_size(limits::STACK_BYTES)
                .spawn_scoped(scope, || self.render_here(document, limits))
                .map_err(|e| Fault::new(Status::Failed, NAME, format!("no thread: {e}")))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn render_here(&self, document: &str, limits: &Limits) -> Outcome<String> {
        let context = self.context(document, Deadline::start(limits))?;
        let template = self.environment.get_template(NAME).map_err(|e| fault_of(&e))?;
        let mut writer = LimitedWriter::new(limits.max_output_bytes);
        let rendered = template.render_captured_to(context, &mut writer).map(|_| ());
        if writer.exceeded() {
            return Err(limit(format!("writes more than {} bytes", limits.max_output_bytes)));
        }
        rendered.map_err(|e| fault_of(&e))?;
        writer.into_text()
    }

    fn context(&self, document: &str, deadline: Deadline) -> Outcome<Value> {
        let parsed: serde_json::Value = serde_json::from_str(document)
            .map_err(|e| Fault::input("template variables", e.to_string()))?;
        let serde_json::Value::Object(given) = parsed else {
            return Err(Fault::input("template variables", "not an object").allowed("an object"));
        };
        let mut variables = serde_json::Map::new();
        // Templates test these without asking whether they are defined.
        variables.insert("tools".into(), serde_json::Value::Null);
        variables.insert("documents".into(), serde_json::Value::Null);
        variables.insert("add_generation_prompt".into(), false.into());
        variables.insert("bos_token".into(), self.bos.as_str().into());
        variables.insert("eos_token".into(), self.eos.as_str().into());
        variables.extend(given);
        let pairs = variables
            .into_iter()
            .map(|(key, value)| (key, tojson::from_json(value)))
            .chain([(limits::DEADLINE.to_string(), Value::from_object(deadline))]);
        Ok(Value::from_pairs(pairs))
    }
}

fn limit(found: impl Into<String>) -> Fault {
    Fault::new(Status::Limit, NAME, found)
        .allowed("a render within its limits of steps, depth, output and time")
        .next("shorten the conversation, or use a template that does less work")
}

/// A template that raised refuses the conversation; everything else is the template's own failure.
fn fault_of(error: &Error) -> Fault {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut line = None;
    while let Some(source) = cause {
        if let Some(raised) = source.downcast_ref::<Raised>() {
            return Fault::new(
                Status::Raised,
                "messages",
                format!("the chat template refuses them: {}", raised.0),
            )
            .allowed("a conversation that it takes")
            .next("change the messages");
        }
        if let Some(inner) = source.downcast_ref::<Error>() {
            line = inner.line().or(line);
            if inner.kind() == ErrorKind::OutOfFuel {
                return limit(format!("takes more than {} steps", limits::STEPS));
            }
            if let Some(reason) = limits::reason(inner) {
                return limit(reason);
            }
        }
        cause = source.source();
    }
    let place = match line {
        Some(line) => format!("{NAME}:{line}"),
        None => NAME.to_string(),
    };
    Fault::new(Status::Failed, place, describe(error))
}

fn describe(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
