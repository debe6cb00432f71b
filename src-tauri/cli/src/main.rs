//! `steward`: the terminal's way to the agents.

mod approval;
mod args;
mod ask;
mod caps;
mod checkpoints;
mod images;
mod journal;
mod keyboard;
mod launch;
mod link;
mod models;
mod print;
mod sched;
mod session;
mod show;
mod standing;
mod tree;
mod waiting;

use std::process::ExitCode;

use clap::Parser;
use steward_host::surface::SignalView;
use steward_host::{Problem, Resume};

use args::{Args, Verb};
use link::Link;
use print::Printer;

/// What a command says to the shell.
type Ended = Result<ExitCode, Problem>;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are not faults; a wrong use is, with clap's own code 2.
            let _printed = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let printer = Printer::new(args.json);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(carry_out(args, &printer));
            // What still runs is written down; the next start goes on with it.
            runtime.shutdown_background();
            ended
        }
        Err(e) => Err(Problem::new("unavailable", format!("cannot start: {e}"))),
    };
    ended.unwrap_or_else(|problem| {
        printer.problem(&problem);
        ExitCode::from(code_of(&problem))
    })
}

/// Exit codes: 1 the request was not done, 2 wrong use, 3 something is missing or broken here.
fn code_of(problem: &Problem) -> u8 {
    match problem.code.as_str() {
        "invalid" | "not_found" => 2,
        _ if is_broken(problem) => BROKEN,
        _ => 1,
    }
}

const BROKEN: u8 = 3;

/// Whether something is missing or broken on this machine, rather than in what was asked.
fn is_broken(problem: &Problem) -> bool {
    matches!(problem.code.as_str(), "unavailable" | "internal") || problem.is_gone()
}

async fn carry_out(args: Args, printer: &Printer) -> Ended {
    if let Some(Verb::Log(log)) = &args.verb
        && let Some(verb) = &log.verb
    {
        return journal::without_kernel(verb, printer);
    }
    let resume = match args.verb {
        Some(Verb::Models { verb }) => return models::run(verb, printer).await,
        Some(Verb::Bench { model, threads }) => {
            return models::bench(model.as_deref(), threads, printer);
        }
        Some(Verb::Doctor) => return show::doctor(printer).await,
        None if !args.toggle => Resume::All,
        _ => Resume::Nothing,
    };
    let mut link = Link::open(resume).await?;
    let ended = converse(args, &mut link, printer).await;
    link.close().await;
    ended
}

/// The commands that speak with the kernel.
async fn converse(args: Args, link: &mut Link, printer: &Printer) -> Ended {
    if args.toggle {
        return show::toggle(link, printer).await;
    }
    match args.verb {
        Some(Verb::Ask {
            request,
            workspace,
            approve,
        }) => {
            let submit = ask::submit(request.join(" "), workspace.or(args.workspace), None)?;
            ask::run(link, submit, approve, printer).await
        }
        Some(Verb::Undo { run, approve }) => {
            let undo = steward_host::Command::Undo { run };
            ask::run(link, undo, approve, printer).await
        }
        Some(Verb::Run(launch)) => launch::run(link, launch, args.workspace, printer).await,
        Some(Verb::Ps { all, tree: true }) => tree::processes(link, all, printer).await,
        Some(Verb::Ps { all, tree: false }) => show::processes(link, all, printer).await,
        Some(Verb::Approvals { id: None, .. }) => waiting::list(link, printer).await,
        Some(Verb::Approvals {
            id: Some(id),
            answer,
            scope,
        }) => waiting::decide(link, id, (answer, scope), printer).await,
        Some(Verb::Answer { id, text }) => waiting::answer(link, id, text.join(" "), printer).await,
        Some(Verb::Pause(it)) => show::signal(link, it.pid, SignalView::Pause, printer).await,
        Some(Verb::Resume(it)) => show::signal(link, it.pid, SignalView::Resume, printer).await,
        Some(Verb::Interrupt(it)) => {
            show::signal(link, it.pid, SignalView::Interrupt, printer).await
        }
        Some(Verb::Kill(it)) => show::signal(link, it.pid, SignalView::Kill, printer).await,
        Some(Verb::Message { pid, text }) => {
            show::message(link, pid, text.join(" "), printer).await
        }
        Some(Verb::Caps(asked)) => caps::run(link, asked, printer).await,
        Some(Verb::Grants { verb }) => standing::grants(link, verb, printer).await,
        Some(Verb::Policy { verb }) => standing::policy(link, verb, printer).await,
        Some(Verb::Checkpoints { verb }) => checkpoints::run(link, verb, printer).await,
        Some(Verb::Images { verb }) => images::run(link, verb, printer).await,
        Some(Verb::Objects(it)) => show::objects(link, it.pid, printer).await,
        Some(Verb::Sched { verb }) => sched::run(link, verb, printer).await,
        Some(Verb::Log(args)) => journal::show(link, *args, printer).await,
        None | Some(Verb::Models { .. } | Verb::Bench { .. } | Verb::Doctor) => {
            session::run(link, &args.workspace, printer).await
        }
    }
}
