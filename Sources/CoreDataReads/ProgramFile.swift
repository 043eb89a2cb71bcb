import Foundation

/// The file of the running program in memory: where its code was loaded, and its sections.
///
/// It is read as the file of an executable is (ELF, 64 bits). A file that is damaged, or of another kind, has no sections.
struct ProgramFile {
    /// A section of the file.
    struct Section {
        /// The kind, such as 2 for a table of symbols.
        let kind: Int
        /// Where the section lies in the file.
        let bytes: Range<Int>
        /// The number of another section, such as that of the texts of a table of symbols.
        let link: Int
        /// Where the name of the section begins in the file.
        fileprivate let name: Int
    }

    let bytes: UnsafeRawBufferPointer
    /// The distance of the addresses in memory from those in the file.
    private let distance: UInt
    private let code: [Range<UInt>]

    /// Calls `body` with the file of the program.
    ///
    /// - Returns: `nil` if the file cannot be read, or was replaced since the program began.
    static func read<R>(_ body: (ProgramFile) -> R?) -> R? {
        #if os(Linux) && _pointerBitWidth(_64)
        guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"),
            let (base, code) = code(ofFile: path),
            let data = try? Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        else { return nil }
        return data.withUnsafeBytes { bytes in
            guard bytes.count > 64 else { return nil }
            // An executable that is not relocatable has addresses, and not distances from its beginning.
            let isFixed = bytes.loadUnaligned(fromByteOffset: 16, as: UInt16.self) == 2
            return body(ProgramFile(bytes: bytes, distance: isFixed ? 0 : base, code: code))
        }
        #else
        return nil
        #endif
    }

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

    /// The place of a call in the file.
    ///
    /// - Parameter call: The return address. The address before it is that of the call, also where a function ends with it.
    /// - Returns: `nil` if the call was not made by the code of the program's file.
    func address(ofCall call: UInt) -> UInt64? {
        let call = call &- 1
        guard code.contains(where: { $0.contains(call) }) else { return nil }
        return UInt64(call &- distance)
    }

    /// A number of the file, or 0 behind its end.
    func number<T: FixedWidthInteger>(_ type: T.Type, at place: Int) -> Int {
        guard place >= 0, place <= bytes.count - MemoryLayout<T>.size else { return 0 }
        return Int(truncatingIfNeeded: bytes.loadUnaligned(fromByteOffset: place, as: type))
    }

    /// The text that begins at a place and ends with a zero.
    func text(at place: Int) -> String {
        guard bytes.indices.contains(place) else { return "" }
        return String(decoding: bytes[place...].prefix { $0 != 0 }, as: UTF8.self)
    }

    // MARK: - Sections

    /// The sections whose bytes are all in the file, and are not compressed; `nil` for the others.
    var sections: [Section?] {
        let (table, size) = (number(UInt64.self, at: 40), number(UInt16.self, at: 58))
        return (0..<number(UInt16.self, at: 60)).map { section in
            let header = table &+ section * size
            let (start, length) = (number(UInt64.self, at: header &+ 24), number(UInt64.self, at: header &+ 32))
            let isCompressed = number(UInt64.self, at: header &+ 8) & 0x800 != 0
            guard !isCompressed, start >= 0, length >= 0, start <= bytes.count - length else { return nil }
            return Section(
                kind: number(UInt32.self, at: header &+ 4),
                bytes: start..<start + length,
                link: number(UInt32.self, at: header &+ 40),
                name: number(UInt32.self, at: header)
            )
        }
    }

    /// The section of a name.
    func section(named name: String) -> Section? {
        let (sections, names) = (sections, number(UInt16.self, at: 62))
        guard sections.indices.contains(names), let texts = sections[names] else { return nil }
        return sections.lazy.compactMap(\.self).first { text(at: texts.bytes.lowerBound + $0.name) == name }
    }
}
