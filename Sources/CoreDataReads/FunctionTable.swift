import Foundation

/// The functions of the program by their addresses, from the symbol table of the program's file.
///
/// The table is in each program that was not stripped.
struct FunctionTable {
    /// An entry of a symbol table, as the file has it (`Elf64_Sym`).
    private struct Symbol {
        var name: UInt32
        var info: UInt8
        var visibility: UInt8
        var section: UInt16
        var value: UInt64
        var size: UInt64
    }

    private let file: ProgramFile

    init(_ file: ProgramFile) { self.file = file }

    /// The first function among some addresses that is not the framework's, and its address.
    func innermost(of addresses: [UInt64]) -> (name: String, address: UInt64)? {
        for case (let name?, let address) in zip(mangledNames(of: addresses), addresses) {
            if let name = Self.readable(name) { return (name, address) }
        }
        return nil
    }

    private func mangledNames(of addresses: [UInt64]) -> [String?] {
        var names = [String?](repeating: nil, count: addresses.count)
        let targets = addresses.enumerated().map { (address: $0.element, place: $0.offset) }
            .sorted { $0.address < $1.address }
        guard let start = file.bytes.baseAddress, let least = targets.first?.address,
            let greatest = targets.last?.address
        else { return names }
        let sections = file.sections
        for case let section? in sections where section.kind == 2 {
            let table = section.bytes
            guard sections.indices.contains(section.link), let texts = sections[section.link]?.bytes,
                table.lowerBound % MemoryLayout<Symbol>.alignment == 0
            else { continue }
            let symbols = (start + table.lowerBound).assumingMemoryBound(to: Symbol.self)
            let count = table.count / MemoryLayout<Symbol>.stride
            // A large program has hundreds of thousands of symbols, and a debug build calls a function for each step of an
            // iterator. So this is a plain loop, and the targets are in order.
            var index = 0
            while index < count {
                let symbol = symbols + index
                index &+= 1
                let first = symbol.pointee.value
                guard first <= greatest, symbol.pointee.info & 15 == 2, first &+ symbol.pointee.size > least else {
                    continue
                }
                var (place, end) = (0, targets.count)
                while place < end {
                    let middle = (place &+ end) / 2
                    if targets[middle].address < first { place = middle &+ 1 } else { end = middle }
                }
                while place < targets.count, targets[place].address < first &+ symbol.pointee.size {
                    defer { place += 1 }
                    guard Int(symbol.pointee.name) < texts.count else { continue }
                    names[targets[place].place] = file.text(at: texts.lowerBound + Int(symbol.pointee.name))
                }
            }
        }
        return names
    }

    // MARK: - Names

    private typealias Demangle =
        @convention(c) (
            UnsafePointer<CChar>?, Int, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<Int>?, UInt32
        ) -> UnsafeMutablePointer<CChar>?

    /// The runtime's function that makes names readable; `nil` if the program does not have it.
    private static let demangle = dlsym(nil, "swift_demangle").map { unsafeBitCast($0, to: Demangle.self) }

    /// The name of a function of the program; `nil` for one of the framework, of Swift, or made by the compiler.
    private static func readable(_ mangled: String) -> String? {
        guard mangled.hasPrefix("$s"), let text = demangle?(mangled, mangled.utf8.count, nil, nil, 0) else {
            return nil
        }
        defer { free(text) }
        return shortened(String(cString: text))
    }

    /// The name without module, parameters and closures; `nil` for a function that is not the program's, and for an accessor.
    ///
    /// Macros make accessors. So the function that uses the property says more.
    static func shortened(_ demangled: String) -> String? {
        // The names of private types have marks that tell files apart.
        var text = demangled.replacing(/\(([^()]+) in _[0-9A-F]+\)/) { $0.1 }[...]
        guard !["thunk", "merged ", "outlined ", "key path "].contains(where: text.contains) else { return nil }
        // A closure is named by the function that has it.
        if text.contains("closure #"), let last = text.range(of: " in ", options: .backwards) {
            text = text[last.upperBound...]
        }
        for start in ["resume partial function for ", "partial apply forwarder for "] {
            if let found = text.range(of: start) { text = text[found.upperBound...] }
        }
        var module: Substring?
        if text.hasPrefix("(extension in "), let end = text.range(of: "):") {
            module = text[..<end.lowerBound].dropFirst("(extension in ".count)
            text = text[end.upperBound...]
        }
        if text.hasPrefix("static ") { text = text.dropFirst("static ".count) }
        let name = text.prefix { $0 != "(" && $0 != "<" && $0 != " " }
        guard let dot = name.firstIndex(of: "."), !isOfFramework(module ?? name[..<dot]),
            !text.dropFirst(name.count).hasPrefix(" : ")
        else { return nil }
        return String(name[name.index(after: dot)...])
    }

    /// The beginnings of the names of modules of the package and of Foundation.
    private static let prefixes = ["CoreData", "Strata", "SwiftData", "Foundation", "_"]

    private static func isOfFramework(_ module: Substring) -> Bool {
        module == "Swift" || module == "Dispatch"
            || !module.hasSuffix("Tests") && prefixes.contains { module.hasPrefix($0) }
    }
}
