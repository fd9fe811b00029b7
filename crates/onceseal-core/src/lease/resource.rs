//! What a lease is on.

use std::fmt;

use crate::id::{RootId, RunId};
use crate::limits;
use crate::run::name;
use crate::stream::{StreamId, Tenant};

/// How deep a path may go: far deeper than projects do.
const SEGMENTS: usize = 64;

/// Something that one holder at a time works on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A run: `run/ID`. Where its lease ends without a word, the run is interrupted.
    Run(RunId),
    /// A task of a run: `run/ID/task/TASK`.
    Task(RunId, String),
    /// A project's directory on one host: `root/ID/workspace@HOST`.
    Workspace(RootId, String),
    /// A file or directory of a project, with all that is below it:
    /// `root/ID/path/a/b`.
    Path(RootId, Vec<String>),
    /// Anything else that has a name: `name/…`.
    Name(String),
}

impl Resource {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Resource> {
        let (kind, rest) = text.split_once('/')?;
        match kind {
            "run" => match rest.split_once("/task/") {
                None => Some(Resource::Run(RunId::parse(rest)?)),
                Some((run, task)) => {
                    name::is_request(task).then_some(Resource::Task(RunId::parse(run)?, task.to_owned()))
                }
            },
            "root" => {
                let (root, rest) = rest.split_once('/')?;
                let root = RootId::parse(root)?;
                match (rest.strip_prefix("workspace@"), rest.strip_prefix("path/")) {
                    (Some(host), _) => {
                        name::is_request(host).then(|| Resource::Workspace(root, host.to_owned()))
                    }
                    (_, Some(path)) => {
                        let segments = Resource::segments(path).filter(|_| limits::is_long_name(path))?;
                        Some(Resource::Path(root, segments))
                    }
                    _ => None,
                }
            }
            "name" => limits::is_long_name(rest).then(|| Resource::Name(rest.to_owned())),
            _ => None,
        }
    }

    /// The steps of a path of a project.
    #[must_use]
    pub fn segments(path: &str) -> Option<Vec<String>> {
        let segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        (segments.len() <= SEGMENTS && segments.iter().all(|it| is_segment(it))).then_some(segments)
    }

    /// The run or task that is interrupted when its lease ends without a word.
    #[must_use]
    pub fn interrupts(&self, tenant: &Tenant) -> Option<StreamId> {
        match self {
            Resource::Run(run) => Some(StreamId::run(*run)),
            Resource::Task(run, task) => Some(tenant.task(*run, task)),
            Resource::Workspace(..) | Resource::Path(..) | Resource::Name(_) => None,
        }
    }

    /// The run that it is, or is a part of.
    #[must_use]
    pub const fn of_run(&self) -> Option<RunId> {
        match self {
            Resource::Run(run) | Resource::Task(run, _) => Some(*run),
            _ => None,
        }
    }

    /// What it is a part of: whoever holds one of these holds it too.
    pub fn above(&self) -> impl Iterator<Item = Resource> {
        let path = match self {
            Resource::Path(root, segments) => Some((*root, segments.as_slice())),
            _ => None,
        };
        path.into_iter().flat_map(|(root, segments)| {
            (1..segments.len()).map(move |length| Resource::Path(root, segments[..length].to_vec()))
        })
    }
}

/// Whether a text is one step of a path. Names are compared as they are written.
fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains('\\')
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Run(run) => write!(f, "run/{run}"),
            Resource::Task(run, task) => write!(f, "run/{run}/task/{task}"),
            Resource::Workspace(root, host) => write!(f, "root/{root}/workspace@{host}"),
            Resource::Path(root, segments) => write!(f, "root/{root}/path/{}", segments.join("/")),
            Resource::Name(name) => write!(f, "name/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_printed_so_and_nothing_else_is_read() {
        let (run, root) = (RunId([1; 16]), RootId([2; 16]));
        for text in [
            format!("run/{run}"),
            format!("run/{run}/task/t-1"),
            format!("root/{root}/workspace@host.example"),
            format!("root/{root}/path/src"),
            format!("root/{root}/path/src/a b/ä.rs"),
            "name/deploy of the shop".to_owned(),
        ] {
            assert_eq!(Resource::parse(&text).map(|read| read.to_string()), Some(text.clone()), "{text}");
        }
        for text in [
            "",
            "run",
            "run/x",
            &format!("run/{run}/task/"),
            &format!("run/{run}/task/-"),
            &format!("root/{root}"),
            &format!("root/{root}/workspace@"),
            &format!("root/{root}/path/"),
            &format!("root/{root}/path//a"),
            &format!("root/{root}/path/a/"),
            &format!("root/{root}/path/a/../b"),
            &format!("root/{root}/path/a\\b"),
            &format!("root/{root}/path/{}", vec!["a"; SEGMENTS + 1].join("/")),
            "name/",
            "name/a\nb",
            "other/a",
        ] {
            assert_eq!(Resource::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_path_is_part_of_every_directory_above_it() {
        let root = RootId([2; 16]);
        let path = |text: &str| Resource::parse(&format!("root/{root}/path/{text}")).expect("a path");
        assert_eq!(path("a/b/c").above().collect::<Vec<_>>(), [path("a"), path("a/b")]);
        assert_eq!(path("a").above().count(), 0);
        assert_eq!(Resource::Run(RunId([1; 16])).above().count(), 0);
    }
}
