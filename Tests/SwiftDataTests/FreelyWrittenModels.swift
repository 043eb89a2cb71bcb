// swift-format-ignore-file
import Foundation
import SwiftData

/// A class as people write them: with comments, operators at the ends and the beginnings of lines, and conditions.
public enum Zone {
    @Model public final class Place {  // a comment with {
        /* var ghost: Int = 1 */
        public var name: String
        private(set) public var sum: Int = 1 +
            2
        var parsed: Int =
            Int("four")
            ?? 5
        var rest: Int = 7 == 7 ?
            1 : 3; var tail = "semi;colon"
        var kind: Kind = if Bool(true) { .open } else { .shut }
        var text: String = """
            several { lines
            """
        #if SOME_CONDITION
            var absent: Int? = 1
        #else
            var present: Int? = 1
        #endif
        weak var neighbour: Place?

        public enum Kind: String, Codable { case open, shut }

        public init(name: String) { self.name = name }
    }
}
