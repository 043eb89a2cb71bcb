import Foundation
import StrataClassGeneration

exit(ModelTool.run(Array(CommandLine.arguments.dropFirst())))
