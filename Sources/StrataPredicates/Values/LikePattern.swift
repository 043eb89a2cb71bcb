/// A pattern of `LIKE`, split at its stars.
///
/// The text must begin with the part before the first star and end with the part after the last one. The parts in
/// between are searched from left to right, each after the one before.
package struct LikePattern: Sendable {
    /// A value beyond the last code point, which means any one code point.
    private static let anyOne: UInt32 = 0x11_0000

    /// The code points of all parts, and `anyOne`.
    private let elements: [UInt32]
    /// The parts between the stars.
    private let parts: [Part]

    private struct Part: Sendable {
        let range: Range<Int>
        /// The table of ``SubstringSearch``.
        ///
        /// It is `nil` for a part with "any one", and for those at the ends, which are not searched.
        let restarts: [Int32]?
    }

    package init(_ pattern: String) {
        var elements: [UInt32] = []
        var ranges: [Range<Int>] = []
        var start = 0
        var isQuoted = false
        for scalar in pattern.unicodeScalars {
            if isQuoted {
                elements.append(scalar.value)
                isQuoted = false
                continue
            }
            switch scalar {
            case "\\": isQuoted = true
            case "?": elements.append(Self.anyOne)
            case "*":
                // Adjacent stars count as one.
                if !ranges.isEmpty, start == elements.count { continue }
                ranges.append(start..<elements.count)
                start = elements.count
            default: elements.append(scalar.value)
            }
        }
        if isQuoted { elements.append(Unicode.Scalar("\\").value) }
        ranges.append(start..<elements.count)
        self.elements = elements
        parts = ranges.enumerated().map { index, range in
            let isSearched = index > 0 && index < ranges.count - 1 && !elements[range].contains(Self.anyOne)
            return Part(
                range: range,
                restarts: isSearched ? SubstringSearch.restarts(for: elements[range]) : nil
            )
        }
    }

    /// The common beginning of all texts that match, and the longest of these texts; empty if there is none.
    package var fixedText: (prefix: String, longest: String) {
        let runs = parts.flatMap { elements[$0.range].split(separator: Self.anyOne) }
        let prefix = elements[parts[0].range].prefix { $0 != Self.anyOne }
        let longest = runs.max { $0.count < $1.count } ?? ArraySlice()
        return (Self.text(prefix), Self.text(longest))
    }

    private static func text(_ elements: ArraySlice<UInt32>) -> String {
        var text = String.UnicodeScalarView()
        text.append(contentsOf: elements.lazy.compactMap(Unicode.Scalar.init))
        return String(text)
    }

    /// Whether a match can take time in proportion to the product of the lengths of text and pattern.
    ///
    /// That is so if a long part that is searched contains `?`.
    package var isCostly: Bool {
        parts.dropFirst().dropLast().contains { $0.restarts == nil && $0.range.count > 8 }
    }

    /// Whether the pattern matches the whole text.
    ///
    /// - Throws: ``PredicateEvaluationError`` if that takes too long, which is possible only if ``isCostly``.
    /// - Complexity: O(*n* + *m*), except for parts with `?` between two stars: O(*n* · *m*).
    package func matches(_ text: UnsafeBufferPointer<UInt8>, ignoringASCIICase: Bool) throws -> Bool {
        if isASCII(text) {
            return try covers(text.count) { index in
                UInt32(ignoringASCIICase ? foldASCIIByte(text[index]) : text[index])
            }
        }
        let scalars = String(decoding: text, as: UTF8.self).unicodeScalars.map(\.value)
        return try scalars.withUnsafeBufferPointer { scalars in try covers(scalars.count) { scalars[$0] } }
    }

    @inline(__always)
    private func covers(_ count: Int, _ scalar: (Int) -> UInt32) throws -> Bool {
        try elements.withUnsafeBufferPointer { elements in
            let first = parts[0].range
            let last = parts[parts.count - 1].range
            guard parts.count > 1 else { return count == first.count && fits(elements, first, 0, scalar) }
            guard first.count + last.count <= count, fits(elements, first, 0, scalar),
                fits(elements, last, count - last.count, scalar)
            else { return false }
            var position = first.count
            var steps = 0
            let end = count - last.count
            for part in parts[1..<(parts.count - 1)] {
                guard let next = try find(elements, part, position, end, &steps, scalar) else { return false }
                position = next
            }
            return true
        }
    }

    /// Whether a part matches at a position of the text, which is long enough.
    @inline(__always)
    private func fits(
        _ elements: UnsafeBufferPointer<UInt32>,
        _ part: Range<Int>,
        _ position: Int,
        _ scalar: (Int) -> UInt32
    ) -> Bool {
        for index in part {
            let element = elements[index]
            if element != Self.anyOne, element != scalar(position + index - part.lowerBound) { return false }
        }
        return true
    }

    /// The end of the first occurrence of a part between two positions of the text.
    @inline(__always)
    private func find(
        _ elements: UnsafeBufferPointer<UInt32>,
        _ part: Part,
        _ start: Int,
        _ end: Int,
        _ steps: inout Int,
        _ scalar: (Int) -> UInt32
    ) throws -> Int? {
        let count = part.range.count
        guard end - start >= count else { return nil }
        guard let restarts = part.restarts else {
            return try findAnyOne(elements, part.range, start, end, &steps, scalar)
        }
        let word = UnsafeBufferPointer(rebasing: elements[part.range])
        return restarts.withUnsafeBufferPointer { restarts in
            var matched = 0
            for position in start..<end {
                let symbol = scalar(position)
                while matched > 0, word[matched] != symbol { matched = Int(restarts[matched - 1]) }
                if word[matched] == symbol { matched += 1 }
                if matched == count { return position + 1 }
            }
            return nil
        }
    }

    @inline(__always)
    private func findAnyOne(
        _ elements: UnsafeBufferPointer<UInt32>,
        _ part: Range<Int>,
        _ start: Int,
        _ end: Int,
        _ steps: inout Int,
        _ scalar: (Int) -> UInt32
    ) throws -> Int? {
        for position in start...(end - part.count) {
            var index = part.lowerBound
            while index < part.upperBound,
                elements[index] == Self.anyOne || elements[index] == scalar(position + index - part.lowerBound)
            {
                index += 1
            }
            if index == part.upperBound { return position + part.count }
            steps += index - part.lowerBound
            if steps > Self.mostSteps { throw Self.excess }
            if position & 0xFFF == 0 { try EvaluationBudget.check() }
        }
        return nil
    }

    /// The most comparisons of elements that fail.
    private static let mostSteps = 50_000_000

    private static let excess = PredicateEvaluationError(
        "LIKE takes too long to find the part of its pattern with a ?, more than \(mostSteps / 1_000_000) million steps"
    )
}
