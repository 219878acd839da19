// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: 2026 The twheel authors
//! Links libtwheel: that of the system, or the one in LIBTWHEEL_DIR. With LIBTWHEEL_STATIC=1 it is
//! libtwheel.a, which becomes part of the program.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTWHEEL_DIR");
    println!("cargo:rerun-if-env-changed=LIBTWHEEL_STATIC");
    let linked_static = env::var("LIBTWHEEL_STATIC").map_or(false, |value| value == "1");
    if let Ok(dir) = env::var("LIBTWHEEL_DIR") {
        println!("cargo:rustc-link-search=native={dir}");
        println!("cargo:rerun-if-changed={dir}/libtwheel.a");
    }
    println!("cargo:rustc-link-lib={}=twheel", if linked_static { "static" } else { "dylib" });
}
