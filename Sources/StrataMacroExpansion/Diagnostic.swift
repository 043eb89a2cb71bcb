/// An error or a warning at a place of the declaration that a macro expands.
struct Diagnostic: Error, Equatable {
    /// The problem, and the remedy.
    let message: String
    /// The bytes of the declaration's source to which it applies.
    let range: Range<Int>
    /// A change that corrects the error.
    var fixIt: FixIt?
    /// Whether the declaration is expanded all the same.
    var isWarning = false

    /// A change of source text that the compiler offers.
    struct FixIt: Equatable {
        let message: String
        let range: Range<Int>
        let replacement: String
    }

    init(_ message: String, at range: Range<Int>, fixIt: FixIt? = nil, isWarning: Bool = false) {
        self.message = message
        self.range = range
        self.fixIt = fixIt
        self.isWarning = isWarning
    }

    /// The diagnostic in the form of the plugin protocol, for a declaration that begins at `location`.
    func encoded(at location: SourceLocation) -> String {
        let file = JSON.quoted(location.file)

        func encoded(_ range: Range<Int>) -> String {
            let start = location.offset + range.lowerBound
            let end = location.offset + range.upperBound
            return #"{"fileName":\#(file),"startOffset":\#(start),"endOffset":\#(end)}"#
        }

        let position = #"{"fileName":\#(file),"offset":\#(location.offset + range.lowerBound)}"#
        let highlights = range.isEmpty ? "" : encoded(range)
        let fixIts =
            fixIt.map { fixIt in
                let change = #"{"range":\#(encoded(fixIt.range)),"newText":\#(JSON.quoted(fixIt.replacement))}"#
                return #"{"message":\#(JSON.quoted(fixIt.message)),"changes":[\#(change)]}"#
            } ?? ""
        let severity = isWarning ? "warning" : "error"
        return #"{"message":\#(JSON.quoted(message)),"severity":"\#(severity)","position":\#(position),"#
            + #""highlights":[\#(highlights)],"notes":[],"fixIts":[\#(fixIts)]}"#
    }
}
