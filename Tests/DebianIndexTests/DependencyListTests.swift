import Expectations
import TestSupport
import Testing

@testable import DebianIndex

@Suite("Names in dependency fields")
struct DependencyListTests {
    @Test(arguments: [
        ("libc6", ["libc6"]),
        ("libc6 (>= 2.34), zlib1g (>= 1:1.2.0)", ["libc6", "zlib1g"]),
        ("default-mta | mail-transport-agent", ["default-mta", "mail-transport-agent"]),
        ("a (= 1), a (<< 2), b|a", ["a", "b"]),
        ("python3:any (>= 3.9~)", ["python3"]),
        ("linux-headers [amd64 arm64] <!nocheck>, gcc", ["linux-headers", "gcc"]),
        ("libstdc++6,g++ , lib.x-y", ["libstdc++6", "g++", "lib.x-y"]),
        ("  spaced\t,\n next", ["spaced", "next"]),
        ("odd (>= 1, 2 | 3), fine", ["odd", "fine"]),
        ("a,,|,b", ["a", "b"]),
        ("", []),
        ("  ", []),
        ("(>= 1), ${misc:Depends}, -x, b", ["b"]),
        ("unclosed (>= 1, rest", ["unclosed"]),
        ("stray ) a, b", ["stray", "b"]),
    ])
    func `only names are kept, each once`(field: String, names: [String]) {
        expectEqual(DependencyList.names(in: field), names)
    }

    @Test func `ten thousand names are no trouble`() {
        let names = (0..<10_000).map { "package-\($0)" }

        expectEqual(DependencyList.names(in: (names + names).joined(separator: " (>= 1), ")), names)
    }
}

@Suite("Maintainers' addresses")
struct MaintainerAddressTests {
    @Test(arguments: [
        ("Jane Doe <jane@example.org>", "Jane Doe", "jane@example.org"),
        ("\"Doe, Jane\" <jane@example.org>", "Doe, Jane", "jane@example.org"),
        ("Jane <JANE@Example.ORG>", "Jane", "jane@example.org"),
        ("Team <a> of Many <team@example.org>", "Team <a> of Many", "team@example.org"),
        ("<bare@example.org>", "bare@example.org", "bare@example.org"),
        ("no address", "no address", "no address"),
        ("Empty <>", "Empty <>", "Empty <>"),
        ("Open <end", "Open <end", "Open <end"),
        ("  Jane   <jane@example.org>  ", "Jane", "jane@example.org"),
    ])
    func `name and address are distinguished`(text: String, name: String, email: String) {
        expectEqual(MaintainerAddress(text), MaintainerAddress(name: name, email: email))
    }

    @Test func `blank text gives no maintainer`() {
        expectEqual(MaintainerAddress(" \t"), nil)
    }
}
