import Foundation

/// The C compiler, which makes what is preloaded: a server's disk, and what a newer libpq does.
enum Compiler {
    static let isThere = ["/usr/bin/cc", "/usr/local/bin/cc"].contains {
        FileManager.default.isExecutableFile(atPath: $0)
    }
}
