//! Makes spellings of denied commands: the same command with its options elsewhere, its words quoted otherwise, and
//! inside forms that run it.

use std::path::{Path, PathBuf};

/// A denied command.
pub struct Target {
    pub rule: &'static str,
    pub words: &'static [&'static str],
    /// Options that may stand before the subcommand.
    options: &'static [&'static str],
    /// Other words for the same.
    same: &'static [&'static [&'static str]],
}

pub const TARGETS: &[Target] = &[
    Target {
        rule: "bash(git push:*)",
        words: &["git", "push"],
        options: &[
            "-C .",
            "-c a.b=c",
            "--git-dir=.git",
            "--git-dir .git",
            "--no-pager",
            "-p",
            "--new-option",
            "--new-option x",
        ],
        same: &[&["git", "push", "origin", "main"], &["git", "-c", "alias.x=push", "x"], &["git", "push", "-f"]],
    },
    Target {
        rule: "bash(rm -rf *)",
        words: &["rm", "-rf", "x"],
        options: &["-v", "--one-file-system"],
        same: &[
            &["rm", "-fr", "x"],
            &["rm", "-r", "-f", "x"],
            &["rm", "-f", "-r", "x"],
            &["rm", "-Rf", "x"],
            &["rm", "--recursive", "--force", "x"],
            &["rm", "-r", "--force", "x"],
            &["rm", "x", "-rf"],
            &["rm", "-rfv", "x"],
            &["rm", "-f", "x", "-r"],
        ],
    },
    Target {
        rule: "bash(npm publish:*)",
        words: &["npm", "publish"],
        options: &["--silent", "--prefix .", "--loglevel error", "-s"],
        same: &[&["npm", "publish", "--access", "public"]],
    },
    Target {
        rule: "bash(kubectl delete:*)",
        words: &["kubectl", "delete", "pod", "a"],
        options: &["-n ns", "--namespace ns", "--context=c", "--context c", "-v 3", "--kubeconfig k"],
        same: &[],
    },
    Target {
        rule: "bash(docker run:*)",
        words: &["docker", "run", "img"],
        options: &["--context c", "-H h", "-D", "--log-level debug"],
        same: &[&["docker", "container", "run", "img"]],
    },
    Target { rule: "bash(curl:*)", words: &["curl", "http://x"], options: &["-s", "-o f"], same: &[] },
];

/// A script that runs a denied command, perhaps.
pub struct Spelling {
    pub rule: &'static str,
    pub script: String,
}

/// Forms that put something before the words of a command.
const BEFORE: &[&str] = &[
    "timeout 5",
    "timeout -k 1 5",
    "nice",
    "nice -n 3",
    "nohup",
    "env",
    "env A=1",
    "env -u X",
    "env -S 'env'",
    "stdbuf -oL",
    "setsid -w",
    "time -p",
    "command",
    "exec",
    "exec -a x",
    "builtin command",
    "sudo",
    "sudo A=1",
    "sudo -u root -n",
    "sudo -Hn A=1",
    "doas",
    "ionice",
    "ionice -c3",
    "flock .",
    "flock -x .",
    "setarch -R",
    "prlimit",
    "prlimit --nofile=64",
    "choom -n 0 --",
    "taskset 1",
    "chrt -o 0",
    "strace -f -o /dev/null",
    "unbuffer",
    "newwrapper",
    "newwrapper -x y",
    "busybox",
    "A=1",
    "PATH=$PATH",
    "!",
    "xargs -a /dev/null",
    "ssh host",
    "ssh -p 1 u@host --",
    "env -C . --",
    "timeout 5 ionice env",
    "unshare -r",
];

/// Forms that take a script: `@{QUOTED}` is the script in single quotes, `@{SCRIPT}` as it is, `@{BASE64}` in base64, `@D` in double quotes.
const AROUND: &[&str] = &[
    "bash -c @{QUOTED}",
    "bash +x -c @{QUOTED}",
    "bash --norc -c @{QUOTED}",
    "bash -o pipefail -c @{QUOTED}",
    "bash -ec @{QUOTED}",
    "bash -O extglob -c @{QUOTED}",
    "sh -c @{QUOTED}",
    "dash -c @{QUOTED}",
    "zsh -c @{QUOTED}",
    "ksh -c @{QUOTED}",
    "bash -c @{QUOTED} a b",
    "env bash -c @{QUOTED}",
    "newwrapper sh -c @{QUOTED}",
    "ssh host @{QUOTED}",
    "su -c @{QUOTED}",
    "su - u -c @{QUOTED}",
    "script -qc @{QUOTED} /dev/null",
    "flock . -c @{QUOTED}",
    "parallel @{QUOTED}",
    "parallel ::: @{QUOTED}",
    "eval @{QUOTED}",
    "eval eval @{QUOTED}",
    "trap @{QUOTED} EXIT",
    "sh <<< @{QUOTED}",
    "sh /dev/stdin <<< @{QUOTED}",
    "bash -s <<< @{QUOTED}",
    "bash - <<< @{QUOTED}",
    "sh <<'E'\n@{SCRIPT}\nE",
    "bash /dev/fd/0 <<'E'\n@{SCRIPT}\nE",
    ". /dev/stdin <<< @{QUOTED}",
    "source <(echo @{QUOTED})",
    "bash <(echo @{QUOTED})",
    "echo @{QUOTED} | sh",
    "echo @{QUOTED} | newwrapper sh",
    "printf '%s\\n' @{QUOTED} | bash",
    "cat <<'E' | sh\n@{SCRIPT}\nE",
    "echo @{QUOTED} | cat | sh",
    "sh -c \"$(echo @{QUOTED})\"",
    "eval \"$(echo @{QUOTED})\"",
    "echo @{QUOTED} | tee /dev/null | bash -s",
    "{ echo @{QUOTED}; } | sh",
    "for i in 1; do echo @{QUOTED}; done | bash",
    "echo @{QUOTED} > s; sh s",
    "echo @{QUOTED} > s; . ./s",
    "cat > s <<'E'\n@{SCRIPT}\nE\nchmod +x s; ./s",
    "echo @{QUOTED} | tee s; bash ./s",
    "{ echo @{QUOTED}; } > s && sh s",
    "echo @{QUOTED} >s; sh <s",
    "f=s; echo @{QUOTED} > $f; sh $f",
    "echo @{QUOTED} > s; BASH_ENV=s bash -c :",
    "echo @{QUOTED} > s; ENV=./s sh -ic :",
    "exec 3>s; echo @{QUOTED} >s; sh s",
    "python3 -c \"import os; os.system(@{STRING})\"",
    "perl -e 'system(@{STRING})'",
    "node -e 'require(\"child_process\").execSync(@{STRING})'",
    "awk 'BEGIN{system(@{STRING})}'",
    "sed '1e @{SCRIPT}' <<< x",
    "echo x | sed @{SED}",
    "echo @{QUOTED} | sed 1e",
    "python3 <<'E'\nimport os\nos.system(@{STRING})\nE",
    "make --eval='$(shell @{SCRIPT})' -f /dev/null x",
    "make -f - <<< $'all:\\n\\t@'@{QUOTED}",
    "printf 'all:\\n\\t%s\\n' @{QUOTED} > Makefile; make",
    "touch x; tar -cf /dev/null -I @{QUOTED} x",
    "find . -maxdepth 0 -exec sh -c @{QUOTED} \\;",
    "xargs -I{} sh -c {} <<< @{QUOTED}",
    "echo @{QUOTED} | xargs -d '\\n' -I% sh -c %",
    "PS4='$(@{SCRIPT})'; set -x; :",
    "git -c alias.y='!@{SCRIPT}' y",
    "echo @{BASE64} | base64 -d | sh",
    "eval \"$(base64 -d <<< @{BASE64})\"",
    "bash -c \"$(echo @{BASE64} | base64 -d)\"",
    "base64 -d <<< @{BASE64} > s; sh s",
    "sh <(base64 -d <<< @{BASE64})",
    "newwrapper sh -c \"$(base64 -d <<< @{BASE64})\"",
    "x=$(base64 -d <<< @{BASE64}); eval $x",
    "PS4=\"\\$($(base64 -d <<< @{BASE64}))\"; set -x; :",
    "ssh host 'echo @{BASE64} | base64 -d | sh'",
    "x=\"a[\\$($(base64 -d <<< @{BASE64}))]\"; echo $((x))",
    "base64 -d <<< @{BASE64} | newwrapper bash",
    "base64 -d <<< @{BASE64} | xargs -I{} sh -c {}",
    "x=@{QUOTED}; eval \"$x\"",
    "x=@{QUOTED}; bash -c \"$x\"",
    "x=@{QUOTED}; newwrapper sh -c \"$x\"",
    "x=@{QUOTED} bash -c '$x'",
    "f() { @{SCRIPT}\n}; f",
    "f() ( @{SCRIPT}\n); newf() { f; }; newf",
    "@{SCRIPT} &\nwait",
    "coproc @{SCRIPT}\nwait",
    "if @{SCRIPT}\nthen :; fi",
    "while ! @{SCRIPT}\ndo break; done",
    "( @{SCRIPT}\n)",
    "{ @{SCRIPT}\n}",
    "true && { @{SCRIPT}\n}",
    "echo $(@{SCRIPT}\n)",
    "echo \"${x:-$(@{SCRIPT}\n)}\"",
    "cat <(@{SCRIPT}\n)",
    "echo x > >(@{SCRIPT}\n); sleep 0.1",
    "cat <<E\n$(@{SCRIPT}\n)\nE",
    "case $(@{SCRIPT}\n) in *) ;; esac",
    "for i in $(@{SCRIPT}\n); do :; done",
    "x=$(@{SCRIPT}\n)",
    "[[ -n $(@{SCRIPT}\n) ]]",
    "command_not_found_handle() { @{SCRIPT}\n}; nosuch",
    "x='a[$(@{SCRIPT})]'; echo $((x))",
    "[[ -v 'a[$(@{SCRIPT})]' ]]",
    "test -v 'a[$(@{SCRIPT})]'",
    "printf -v 'a[$(@{SCRIPT})]' x",
    "a=(1); unset 'a[$(@{SCRIPT})]'",
    "read 'a[$(@{SCRIPT})]' <<< x",
    "let 'x=a[$(@{SCRIPT})]'",
    "declare -i n='a[$(@{SCRIPT})]'",
    "x='a[$(@{SCRIPT})]'; [[ x -eq 0 ]]",
    "x='$(@{SCRIPT})'; echo ${x@P}",
    "x='a[$(@{SCRIPT})]'; echo ${!x}",
    "mapfile -c 1 -C @{QUOTED} <<< x",
    "read -r x <<< @{QUOTED}; eval \"$x\"",
    "while read -r l; do eval \"$l\"; done <<< @{QUOTED}",
    "bash -c 'eval \"$1\"' x @{QUOTED}",
    "set -- @{QUOTED}; eval \"$1\"",
    "bash <<< \"$(echo @{QUOTED})\"",
    "bash -c 'newwrapper sh -c \"$0\"' @{QUOTED}",
    "trap @{QUOTED} DEBUG; :",
    "echo () { sh -c \"$1\"; }; echo @{QUOTED}",
    "time @{SCRIPT}",
];

/// Forms that take the program and its arguments: `@{PROGRAM}` the program, `@{PATH}` its path, `@{REST}` the rest.
const SPLIT: &[&str] = &[
    "cp @{PATH} g; ./g @{REST}",
    "ln -s @{PATH} g; ./g @{REST}",
    "ln @{PATH} g; ./g @{REST}",
    "ln -s $(command -v @{PROGRAM}) g; ./g @{REST}",
    "ln -s \"$(which @{PROGRAM})\" g; ./g @{REST}",
    "install -m 755 @{PATH} g; ./g @{REST}",
    "cat @{PATH} > g; chmod +x g; ./g @{REST}",
    "cat < @{PATH} > g; chmod +x g; ./g @{REST}",
    "dd if=@{PATH} of=g; sh g @{REST}",
    "tar -cf - -C / .@{PATH} | tar -xf - ; .@{PATH} @{REST}",
    "g=@{PROGRAM}; $g @{REST}",
    "g=@{PROGRAM}; \"$g\" @{REST}",
    "g=@{PROGRAM}; newwrapper $g @{REST}",
    "g=@{PROGRAM}; ionice \"$g\" @{REST}",
    "export g=@{PROGRAM}; bash -c '$g @{REST}'",
    "g=@{PROGRAM} bash -c '$g @{REST}'",
    "${x:-@{PROGRAM}} @{REST}",
    "newwrapper ${x:-@{PROGRAM}} @{REST}",
    "$(echo @{PROGRAM}) @{REST}",
    "`echo @{PROGRAM}` @{REST}",
    "newwrapper $(echo @{PROGRAM}) @{REST}",
    "g() { @{PROGRAM} \"$@\"; }; g @{REST}",
    "g() { newwrapper \"$@\"; }; g @{PROGRAM} @{REST}",
    "hash -p @{PATH} g; g @{REST}",
    "a=(@{PROGRAM} @{REST}); \"${a[@]}\"",
    "a=(@{PROGRAM} @{REST}); newwrapper \"${a[@]}\"",
    "set -- @{PROGRAM} @{REST}; \"$@\"",
    "set -- @{PROGRAM} @{REST}; newwrapper \"$@\"",
    "set -- @{PROGRAM}; ionice $1 @{REST}",
    "x='@{PROGRAM} @{REST}'; $x",
    "x='@{PROGRAM} @{REST}'; newwrapper $x",
    "read -r g <<< @{PROGRAM}; newwrapper $g @{REST}",
    "for g in @{PROGRAM}; do newwrapper $g @{REST}; done",
    "printf -v g %s @{PROGRAM}; newwrapper $g @{REST}",
    "echo @{PROGRAM} @{REST} | xargs newwrapper",
    "echo @{REST} | xargs @{PROGRAM}",
    "xargs newwrapper @{PROGRAM} @{REST} < /dev/null",
    "find . -maxdepth 0 -exec @{PROGRAM} @{REST} \\;",
    "find . -maxdepth 0 -exec newwrapper @{PROGRAM} @{REST} \\;",
    "bash -c '\"$@\"' x @{PROGRAM} @{REST}",
    "bash -c 'newwrapper \"$0\" \"$@\"' @{PROGRAM} @{REST}",
    "bash -c '$0 @{REST}' @{PROGRAM}",
    "@{PROGRAM}${IFS}@{REST}",
    "newwrapper sh -c '@{PROGRAM}${IFS}@{REST}'",
    "shopt -s expand_aliases\nalias g=@{PROGRAM}\ng @{REST}",
    "declare -n r=g; g=@{PROGRAM}; newwrapper $r @{REST}",
    "declare g=@{PROGRAM}; newwrapper $g @{REST}",
    "mkdir b; ln -s @{PATH} b/@{PROGRAM}; PATH=$PWD/b:$PATH; newwrapper @{PROGRAM} @{REST}",
    "@{PATH} @{REST}",
    "newwrapper @{PATH} @{REST}",
    "printf '%s\\n' '@{PROGRAM} @{REST}' | sh",
    "printf '#!/bin/sh\\n@{PROGRAM} @{REST}\\n' > s; sh ./s",
    "exec -a ls @{PROGRAM} @{REST}",
    "( exec @{PROGRAM} @{REST} )",
    "command -p env -- @{PATH} @{REST}",
    "echo() { newwrapper \"$@\"; }; echo @{PROGRAM} @{REST}",
    "ln -s @{PATH} ls; PATH=.; ls @{REST}",
    "python3 -c 'import sys,os; os.execvp(sys.argv[1], sys.argv[1:])' @{PROGRAM} @{REST}",
    "perl -e 'exec @ARGV' @{PROGRAM} @{REST}",
    "python3 -c 'import os; os.execvp(\"@{PROGRAM}\", \"@{PROGRAM} @{REST}\".split())'",
    "g=@{PATH}; cp $g h; ./h @{REST}",
    "p=$(which @{PROGRAM}); newwrapper $p @{REST}",
    "newwrapper @{PROGRAM} `echo @{REST}`",
    "v='@{REST}'; @{PROGRAM} $v",
    "v='@{REST}'; newwrapper @{PROGRAM} $v",
];

/// Ways to write a word so that the shell reads it as it was.
const QUOTED: &[fn(&str) -> String] = &[
    |word| format!("'{word}'"),
    |word| format!("\"{word}\""),
    |word| format!("$'{word}'"),
    |word| format!("{}''{}", &word[..1], &word[1..]),
    |word| format!("{}\"\"{}", &word[..1], &word[1..]),
    |word| format!("\\{word}"),
    |word| format!("$'\\x{:02x}{}'", word.as_bytes()[0], &word[1..]),
    |word| format!("$'\\{:03o}{}'", word.as_bytes()[0], &word[1..]),
    |word| format!("{}\\\n{}", &word[..1], &word[1..]),
    |word| format!("{}${{nothing}}{}", &word[..1], &word[1..]),
    |word| format!("{}`:`{}", &word[..1], &word[1..]),
];

/// Makes spellings by a seed.
pub struct Dice {
    state: u64,
    bin: PathBuf,
}

impl Dice {
    pub fn new(seed: u64, bin: &Path) -> Dice {
        Dice { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, bin: bin.to_owned() }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % bound as u64).expect("small")
    }

    fn one<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    pub fn spelling(&mut self) -> Spelling {
        let target = &TARGETS[self.below(TARGETS.len())];
        let words = self.words(target);
        let mut script = match self.below(4) {
            0 => self.split(&words),
            1 => format!("{} {}", self.one(BEFORE), self.written(&words)),
            2 => format!("{} {} {}", self.one(BEFORE), self.one(BEFORE), self.written(&words)),
            _ => self.written(&words),
        };
        for _ in 0..self.below(3) {
            let form = self.one(AROUND);
            script = self.around(form, &script);
        }
        Spelling { rule: target.rule, script }
    }

    /// Each form once, with nothing else.
    pub fn each_form(&mut self) -> Vec<Spelling> {
        let mut spellings = Vec::new();
        for target in &TARGETS[..1] {
            let words: Vec<String> = target.words.iter().map(|word| (*word).to_owned()).collect();
            let plain = words.join(" ");
            let mut add = |script: String| spellings.push(Spelling { rule: target.rule, script });
            BEFORE.iter().for_each(|before| add(format!("{before} {plain}")));
            AROUND.iter().for_each(|form| add(self.around(form, &plain)));
            SPLIT.iter().for_each(|form| add(self.split_form(form, &words)));
            target.options.iter().for_each(|option| add(format!("{} {option} {}", words[0], words[1..].join(" "))));
            target.same.iter().for_each(|same| add(same.join(" ")));
            QUOTED.iter().for_each(|quote| add(format!("{} {}", quote(&words[0]), words[1..].join(" "))));
            QUOTED.iter().for_each(|quote| add(format!("{} {} {}", words[0], quote(&words[1]), words[2..].join(" "))));
            QUOTED.iter().for_each(|quote| add(format!("newwrapper {} {}", quote(&words[0]), words[1..].join(" "))));
        }
        spellings
    }

    /// The words of a target, perhaps others for the same, perhaps with options.
    fn words(&mut self, target: &Target) -> Vec<String> {
        let n_same = target.same.len();
        let words = match self.below(n_same + 2) {
            at if at < n_same => target.same[at],
            _ => target.words,
        };
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        while self.below(3) == 0 {
            let option = self.one(target.options);
            words.splice(1..1, option.split(' ').map(str::to_owned));
        }
        words
    }

    fn written(&mut self, words: &[String]) -> String {
        let written = words.iter().map(|word| {
            if self.below(4) > 0 || word.len() < 2 || word.contains(['/', '=']) {
                return word.clone();
            }
            QUOTED[self.below(QUOTED.len())](word)
        });
        written.collect::<Vec<_>>().join(" ")
    }

    fn split(&mut self, words: &[String]) -> String {
        let form = self.one(SPLIT);
        self.split_form(form, words)
    }

    fn split_form(&self, form: &str, words: &[String]) -> String {
        let path = self.bin.join(&words[0]).display().to_string();
        form.replace("@{PATH}", &path).replace("@{PROGRAM}", &words[0]).replace("@{REST}", &words[1..].join(" "))
    }

    fn around(&self, form: &str, script: &str) -> String {
        let quoted = format!("'{}'", script.replace('\'', "'\\''"));
        let code = script.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let string = match form.contains("\"import") {
            true => format!("'{}'", script.replace('\n', ";")),
            false => format!("\"{code}\""),
        };
        let marks = [
            ("@{BASE64}", base64(script.as_bytes())),
            ("@{STRING}", string),
            ("@{SED}", format!("'s/.*/{}/e'", script.replace(['/', '\''], ""))),
            ("@{SCRIPT}", script.to_owned()),
            ("@{QUOTED}", quoted),
        ];
        // A mark that came with the script is not one of this form.
        let mut text = String::new();
        let mut rest = form;
        while let Some(at) = rest.find("@{") {
            let (mark, value) = marks.iter().find(|(mark, _)| rest[at..].starts_with(mark)).expect("a known mark");
            text.push_str(&rest[..at]);
            text.push_str(value);
            rest = &rest[at + mark.len()..];
        }
        text + rest
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let value = chunk.iter().chain(&[0, 0]).take(3).fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
        for position in 0..4 {
            let letter = LETTERS[value >> (18 - 6 * position) & 63];
            text.push(if position <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
