import Foundation

/// The lines of the source files by the addresses of the program, from the debug information in the program's file.
///
/// The compiler writes a table for each source file, as a program that moves an address and a line forward (DWARF, section
/// 6.2 of its versions 2 to 4, one of which Swift writes). A part of such a program begins by setting the address. So the
/// parts are found by a search for that instruction, and only the part with the wanted address is run. Whatever has another
/// form has no line.
struct LineTable {
    private let file: ProgramFile
    private let bytes: Range<Int>

    /// `nil` if the program was built, or stripped, without debug information.
    init?(_ file: ProgramFile) {
        guard let section = file.section(named: ".debug_line"), !section.bytes.isEmpty else { return nil }
        self.file = file
        bytes = section.bytes
    }

    /// The file and the line of an address, such as `ListView.swift:12`; `nil` if they are not known.
    func line(of address: UInt64) -> String? {
        guard let start = part(before: address), let header = header(ofTableWith: start) else { return nil }
        guard let (number, line) = row(of: address, from: start, header),
            let name = fileName(number, header)
        else { return nil }
        return "\(name):\(line)"
    }

    /// The place of the part of a program that begins at the address, or before it and last.
    private func part(before address: UInt64) -> Int? {
        guard let start = file.bytes.baseAddress else { return nil }
        var found: (place: Int, address: UInt64)?
        var place = bytes.lowerBound + 1
        // The instruction that sets the address is 0, 9, 2 and the address. Most other bytes are zeros, so the 9 is looked for.
        while place < bytes.upperBound, let next = memchr(start + place, 9, bytes.upperBound - place) {
            place = UnsafeRawPointer(next) - start
            defer { place += 1 }
            guard start.load(fromByteOffset: place - 1, as: UInt8.self) == 0,
                file.number(UInt8.self, at: place + 1) == 2
            else {
                continue
            }
            let begin = UInt64(truncatingIfNeeded: file.number(UInt64.self, at: place + 2))
            // Parts that the linker has left out begin at 0.
            if begin <= address, begin > found?.address ?? 0 { found = (place - 1, begin) }
        }
        return found?.place
    }

    // MARK: - Tables

    /// The beginning of a table.
    private struct Header {
        /// Where the table ends.
        let end: Int
        let smallestInstruction: Int
        let lineBase: Int
        let lineRange: Int
        let firstSpecial: Int
        /// Where the numbers of the standard instructions' operands are.
        let operands: Int
        /// Where the names of the files begin.
        let files: Int
    }

    /// The beginning of the table that has a place; `nil` if it is of another form.
    private func header(ofTableWith place: Int) -> Header? {
        var start = bytes.lowerBound
        while start < place {
            let length = file.number(UInt32.self, at: start)
            // Larger values stand for tables of 4 GiB and more.
            guard length > 10, length < 0xffff_fff0 else { return nil }
            let end = start + 4 + length
            guard end <= bytes.upperBound else { return nil }
            if place < end { return header(at: start, end: end) }
            start = end
        }
        return nil
    }

    private func header(at start: Int, end: Int) -> Header? {
        let version = file.number(UInt16.self, at: start + 4)
        guard (2...4).contains(version) else { return nil }
        // Version 4 has a number more, that of the operations of an instruction.
        let place = start + (version == 4 ? 12 : 11)
        let firstSpecial = file.number(UInt8.self, at: place + 3)
        let (base, range) = (file.number(Int8.self, at: place + 1), file.number(UInt8.self, at: place + 2))
        guard range > 0, firstSpecial > 0 else { return nil }
        var cursor = Cursor(file, at: place + 4 + firstSpecial - 1, end)
        // The folders end with an empty name.
        while cursor.skipText() {}
        return Header(
            end: end,
            smallestInstruction: file.number(UInt8.self, at: start + 10),
            lineBase: base,
            lineRange: range,
            firstSpecial: firstSpecial,
            operands: place + 4,
            files: cursor.place
        )
    }

    private func fileName(_ number: Int, _ header: Header) -> String? {
        var cursor = Cursor(file, at: header.files, header.end)
        var current = 1
        while true {
            let start = cursor.place
            guard cursor.skipText() else { return nil }
            if current == number { return file.text(at: start).split(separator: "/").last.map(String.init) }
            // The folder, the time and the size of the file.
            for _ in 0..<3 { _ = cursor.number() }
            current += 1
        }
    }

    // MARK: - Programs

    /// Runs a part of a program until it has passed the address.
    ///
    /// - Returns: The number of the file, and the line.
    private func row(of address: UInt64, from start: Int, _ header: Header) -> (file: Int, line: Int)? {
        var cursor = Cursor(file, at: start, header.end)
        var (current, number, line): (UInt64, Int, Int) = (0, 1, 1)
        var last: (file: Int, line: Int)?
        func advance(_ instructions: Int) {
            current &+= UInt64(truncatingIfNeeded: instructions &* header.smallestInstruction)
        }
        /// Whether a row that begins at the present address ends the search.
        func isOver() -> Bool {
            if current > address { return true }
            // Code that the compiler has added has the line 0. It belongs to the line before.
            if line > 0 { last = (number, line) }
            return false
        }
        while !cursor.isAtEnd {
            let operation = cursor.byte()
            if operation >= header.firstSpecial {
                let special = operation - header.firstSpecial
                advance(special / header.lineRange)
                line &+= header.lineBase + special % header.lineRange
                if isOver() { return last }
                continue
            }
            switch operation {
            case 0:
                let length = cursor.number()
                let end = cursor.place &+ length
                switch length > 0 ? cursor.byte() : 0 {
                case 1: return current > address ? last : nil
                case 2:
                    // Another part begins.
                    if last != nil { return nil }
                    current = UInt64(truncatingIfNeeded: file.number(UInt64.self, at: cursor.place))
                default: break
                }
                cursor.move(to: end)
            case 1: if isOver() { return last }
            case 2: advance(cursor.number())
            case 3: line &+= cursor.signedNumber()
            case 4: number = cursor.number()
            case 8: advance((255 - header.firstSpecial) / header.lineRange)
            case 9:
                current &+= UInt64(file.number(UInt16.self, at: cursor.place))
                cursor.move(to: cursor.place + 2)
            default:
                for _ in 0..<file.number(UInt8.self, at: header.operands + operation - 1) { _ = cursor.number() }
            }
        }
        return nil
    }
}

/// Reads a part of a file from its beginning to its end; behind the end there are zeros.
private struct Cursor {
    private let file: ProgramFile
    private(set) var place: Int
    private let end: Int

    init(_ file: ProgramFile, at place: Int, _ end: Int) {
        (self.file, self.place, self.end) = (file, place, end)
    }

    var isAtEnd: Bool { place >= end }

    mutating func move(to next: Int) { place = next > place ? next : end }

    mutating func byte() -> Int {
        guard !isAtEnd else { return 0 }
        defer { place += 1 }
        return Int(file.bytes[place])
    }

    /// A number of seven bits a byte, the lowest first.
    mutating func number() -> Int { groups().number }

    /// Such a number with a sign, which is the highest bit of its last byte.
    mutating func signedNumber() -> Int {
        let (number, bits) = groups()
        guard bits > 0, bits < Int.bitWidth, number >> (bits - 1) & 1 == 1 else { return number }
        return number | ~0 << bits
    }

    private mutating func groups() -> (number: Int, bits: Int) {
        var (number, bits) = (0, 0)
        while !isAtEnd {
            let next = byte()
            if bits < Int.bitWidth { number |= (next & 127) << bits }
            bits += 7
            if next < 128 { break }
        }
        return (number, bits)
    }

    /// Moves behind a text and its zero; false if the text is empty.
    mutating func skipText() -> Bool {
        let start = place
        while !isAtEnd, file.bytes[place] != 0 { place += 1 }
        let isEmpty = place == start
        if !isAtEnd { place += 1 }
        return !isEmpty
    }
}
