//! Lets `tools/contract.py` derive the plan's records and the tables' rows from the Python side.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    for source in [
        "src/plait/plan/model",
        "src/plait/traffic",
        "src/plait/dataset/model.py",
        "src/plait/parts.py",
        "src/plait/frames.py",
        "tools/contract.py",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    println!("cargo:rerun-if-env-changed=PLAIT_PYTHON");
    let installed = root.join(".venv/bin/python");
    let python = env::var_os("PLAIT_PYTHON").map_or(installed, PathBuf::from);
    let status = Command::new(&python)
        .arg("-B")
        .arg(root.join("tools/contract.py"))
        .arg(out)
        .env("PYTHONPATH", root.join("src"))
        .status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{} could not derive the plan's records from src/plait/plan/model and src/plait/traffic ({status:?}): run `make setup`, which \
         makes .venv, or name a Python that has plait's dependencies in PLAIT_PYTHON",
        python.display()
    );
}
