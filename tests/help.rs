//! The help of every command, and the completions and manual pages that are made of it.

use std::process::Command;

fn program(arguments: &[&str]) -> String {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
        .args(arguments)
        .output()
        .expect("starts");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The names of all commands.
fn commands() -> Vec<String> {
    let help = program(&["--help"]);
    let list = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("Options:").next())
        .expect("a list");
    let names = list
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned));
    let names: Vec<String> = names
        .filter(|name| name != "help" && name.chars().all(char::is_alphabetic))
        .collect();
    names
        .into_iter()
        .filter(|name| list.contains(&format!("\n  {name} ")))
        .collect()
}

#[test]
fn every_command_shows_an_example_that_can_be_parsed() {
    let commands = commands();
    assert!(
        commands.len() >= 12 && commands.contains(&"gradient".to_owned()),
        "{commands:?}"
    );
    for command in commands {
        let help = program(&[&command, "--help"]);
        let examples = help
            .split("Examples:")
            .nth(1)
            .unwrap_or_else(|| panic!("{command} has no example"));
        let mut count = 0;
        for line in examples.lines().filter_map(|line| line.trim().strip_prefix("prbopt ")) {
            let words = line.split([' ', '|', '>', '&']).filter(|w| !w.is_empty());
            let words: Vec<&str> = words.take_while(|w| *w != "man" || command == "man").collect();
            assert_eq!(words[0], command, "{line}");
            count += 1;
        }
        assert!(count > 0, "{command}: {examples}");
    }
}

#[test]
fn completions_and_manual_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = program(&["completions", shell]);
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
    assert!(program(&["man"]).contains(".TH prbopt 1"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    program(&["man", "-o", &folder.path().display().to_string()]);
    for command in commands() {
        let page = std::fs::read_to_string(folder.path().join(format!("prbopt-{command}.1"))).expect("a page");
        assert!(page.contains("Examples:"), "{command}");
    }
}

#[test]
fn the_schema_is_data_alone() {
    let schema: serde_json::Value = serde_json::from_str(&program(&["schema"])).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
}
