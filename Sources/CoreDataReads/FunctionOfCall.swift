import Foundation
import StrataLocks

/// The function of the program from which a call into the framework was made, by the symbol table of the program's file.
///
/// The table is in each program that was not stripped. The look-up reads the file, and stops no thread, so it is safe beside
/// others. It costs some milliseconds for each hundred thousand symbols.
enum FunctionOfCall {
    /// An entry of a symbol table, as the file has it (`Elf64_Sym`).
    private struct Symbol {
        var name: UInt32
        var info: UInt8
        var visibility: UInt8
        var section: UInt16
        var value: UInt64
        var size: UInt64
    }

    /// The names that were looked up, by the calls.
    private static let known = Locked<[[UInt]: String?]>([:])
    /// The most names that are remembered.
    private static let limit = 1000

    /// The name of the innermost function among calls that is not the framework's, such as `ListView.show`.
    ///
    /// - Parameter calls: The return addresses of calls, the innermost first.
    /// - Returns: `nil` if the program has no symbols, or none of the calls is in its file.
    static func name(of calls: [UInt]) -> String? {
        if let known = known.withLock({ $0[calls] }) { return known }
        let found = foundName(of: calls)
        known.withLock { if $0.count < limit { $0[calls] = .some(found) } }
        return found
    }

    private static func foundName(of calls: [UInt]) -> String? {
        #if os(Linux) && _pointerBitWidth(_64)
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"),
            let code = code(ofFile: program),
            let file = try? Data(contentsOf: URL(fileURLWithPath: program), options: .alwaysMapped)
        else { return nil }
        // The address before the return is that of the call, also where a function ends with it.
        let own = calls.map { $0 - 1 }.filter { call in code.ranges.contains { $0.contains(call) } }
        let names = file.withUnsafeBytes { mangledNames(of: own, loadedAt: code.base, in: $0) }
        for case let name? in names {
            if let name = readable(name) { return name }
        }
        #endif
        return nil
    }

    #if os(Linux) && _pointerBitWidth(_64)
    /// Where a file was loaded, and the addresses of its code; `nil` if it was replaced since.
    private static func code(ofFile path: String) -> (base: UInt, ranges: [Range<UInt>])? {
        guard let maps = try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8) else { return nil }
        var base: UInt?
        var ranges: [Range<UInt>] = []
        for line in maps.split(separator: "\n") where line.hasSuffix(" " + path) {
            let words = line.split(separator: " ", maxSplits: 3)
            let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard words.count == 4, ends.count == 2, ends[0] < ends[1] else { continue }
            if words[2].allSatisfy({ $0 == "0" }) { base = base ?? ends[0] }
            if words[1].contains("x") { ranges.append(ends[0]..<ends[1]) }
        }
        return base.map { ($0, ranges) }
    }

    private static func mangledNames(of addresses: [UInt], loadedAt base: UInt, in file: UnsafeRawBufferPointer)
        -> [String?]
    {
        var names = [String?](repeating: nil, count: addresses.count)
        guard let start = file.baseAddress, file.count > 64 else { return names }
        func number<T: FixedWidthInteger>(_ type: T.Type, at place: Int) -> Int {
            guard place >= 0, place <= file.count - MemoryLayout<T>.size else { return 0 }
            return Int(truncatingIfNeeded: file.loadUnaligned(fromByteOffset: place, as: type))
        }
        // An executable that is not relocatable has addresses, and not distances from its beginning.
        let offset = number(UInt16.self, at: 16) == 2 ? 0 : base
        let targets = addresses.enumerated().map { (address: UInt64($0.element - offset), place: $0.offset) }
            .sorted { $0.address < $1.address }
        guard let least = targets.first?.address, let greatest = targets.last?.address else { return names }
        let (sections, size) = (number(UInt64.self, at: 40), number(UInt16.self, at: 58))
        func part(_ section: Int) -> Range<Int>? {
            let from = number(UInt64.self, at: sections &+ section * size &+ 24)
            let length = number(UInt64.self, at: sections &+ section * size &+ 32)
            return from >= 0 && length >= 0 && from <= file.count - length ? from..<from + length : nil
        }
        for section in 0..<number(UInt16.self, at: 60)
        where number(UInt32.self, at: sections &+ section * size &+ 4) == 2 {
            guard let table = part(section),
                let texts = part(number(UInt32.self, at: sections &+ section * size &+ 40)),
                table.lowerBound % MemoryLayout<Symbol>.alignment == 0, !texts.isEmpty
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
                    let text = file[(texts.lowerBound + Int(symbol.pointee.name))..<texts.upperBound].prefix { $0 != 0 }
                    names[targets[place].place] = String(decoding: text, as: UTF8.self)
                }
            }
        }
        return names
    }

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
    #endif

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
